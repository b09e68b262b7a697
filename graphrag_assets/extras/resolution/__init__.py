"""Decisions on names by people, and by a chat model on request."""
