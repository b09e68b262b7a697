"""Features that the core does without, each in a room of its own."""
