"""The embedded default: real methods that need no key, no network and no downloaded model."""

EXTRACTOR = "offline/nlp-2"
REPORTER = "offline/extractive-2"
