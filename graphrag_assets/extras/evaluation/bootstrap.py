"""Paired bootstrap over questions (Efron and Tibshirani 1993)."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000


class Difference(NamedTuple):
    """The mean of paired differences, its 95 % interval, and p: how likely it is not below 0, by resampling."""

    mean: float
    low: float
    high: float
    p_worse: float

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def paired(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Difference:
    """The difference of two measurements of the same questions, in the same order."""
    differences = np.array(after, float) - np.array(before, float)
    if not differences.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    draws = np.random.default_rng(seed).integers(len(differences), size=(RESAMPLES, len(differences)))
    means = differences[draws].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(fmean(differences.tolist()), float(low), float(high), float((means >= 0).mean()))
