"""Prompts tuned to the documents of an index: a chat model reads a sample of them."""
