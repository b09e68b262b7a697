"""Imports indexes of Microsoft GraphRAG 3, and exports for GraphRAG 3, graph tools (GraphML) and Neo4j.

`source` reads GraphRAG's tables; `texts`, `facts` and `reports` turn the rows that fit into those of a batch;
`importer` writes these. `graphrag_settings` translates GraphRAG's settings.
"""
