"""Clients of language and embedding models: ledger, limits, budget, retries, litellm, the ledger again."""
