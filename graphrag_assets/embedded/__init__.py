"""The embedded default: real methods that need no key, no network and no downloaded model."""

EXTRACTOR = "embedded/nlp-2"
"""Extractor of facts by the embedded default; `EXTRACTOR+…` where claims are another's, or off, and `…+EXTRACTOR` where
only claims are the embedded default's."""
REPORTER = "embedded/extractive-2"
