"""Pictures of an index as small SVG texts: pure functions of frames, for the Dagster UI.

They show counts and the names of entities, never the text of a document.
"""
