"""Imports indexes of Microsoft GraphRAG and graphs, and exports the index for GraphRAG and graph tools.

`source` reads GraphRAG's output of any generation, and plain graphs, into frames of one shape; `repair_texts`,
`repair_graph` and `repair_reports` repair them; `facts`, `hierarchy` and `structure` turn them into rows of this index;
`importer` writes these and runs the ordinary stages. `exporter` writes the formats of other tools. `graphrag_settings`
translates GraphRAG's settings; its prompts are translated by `llm.graphrag_prompts`.
"""
