"""Imports indexes of Microsoft GraphRAG and graphs, and exports the index for GraphRAG and graph tools.

`source` reads the output of GraphRAG 1 to 3, and plain graphs, into frames of one shape; `text_rows`, `graph_rows` and
`report_rows` keep the rows that fit; `facts`, `hierarchy` and `structure` turn them into rows of this index;
`importer` writes these and runs the ordinary stages. `exporter` writes the formats of other tools. `graphrag_settings`
translates GraphRAG's settings.
"""
