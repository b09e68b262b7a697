"""What models are asked to do: a module per family of tasks, with its requests, answer formats and records."""
