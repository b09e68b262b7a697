"""Planned search: answers in steps with variables."""
