"""Evaluation: a number for every publication, and a gate before it (docs/evaluation.md)."""
