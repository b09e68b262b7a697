"""Lazy search: relevance tests of text units within a budget, without reports."""
