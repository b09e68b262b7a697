"""The embedded default: real methods that need no key, no network and no downloaded model."""

EXTRACTOR = "embedded/nlp-2"
REPORTER = "embedded/extractive-2"
