"""Pictures of an index as small SVG texts: pure functions of frames, for reports and the Dagster UI.

What is drawn is counts, costs and the names of entities, never the text of a document.
"""
