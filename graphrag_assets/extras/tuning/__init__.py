"""Prompts that are tuned to the documents of an index."""
