"""The removal of deleted documents from every file."""
