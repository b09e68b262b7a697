"""Evaluation: recall and right answers on the user's questions, and a check of each publication."""
