"""Words, languages, dates and references in texts."""
