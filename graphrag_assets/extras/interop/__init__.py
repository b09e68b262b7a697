"""Imports indexes of Microsoft GraphRAG 3, and exports for GraphRAG 3, graph tools (GraphML) and Neo4j.

`source` reads GraphRAG's tables; `texts`, `graph_rows` and `reports` keep the rows that fit; `facts` turns them into
the facts of a batch; `importer` writes these with the communities and reports. `graphrag_settings` translates
GraphRAG's settings.
"""
