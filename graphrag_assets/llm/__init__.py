"""Clients of language and embedding models, with one ledger and one set of limits.

The entry points are `ask_model.ChatModel` and `embedding_client.EmbeddingModel`. A call passes, in this order: the
ledger (no answer is paid for twice), single-flight, the limits, the budget, retries, the provider by litellm,
validation, the ledger again. litellm is imported with the first request that is sent.
"""
