"""Indexing on several machines."""
