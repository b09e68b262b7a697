"""One file per evaluator: pure functions from rankings, answers or a publication to numbers from 0 to 1."""
