"""The tasks of chat models: a module per task, with its requests, answer formats and records."""
