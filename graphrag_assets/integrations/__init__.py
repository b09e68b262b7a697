"""Retrievers for other frameworks: `langchain` and `llama_index`. Each needs the extra of its name."""
