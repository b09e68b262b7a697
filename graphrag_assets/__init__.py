"""GraphRAG as a Dagster project: documents in, a knowledge graph in DuckDB out, answers over it."""

__version__ = "0.1.0"
