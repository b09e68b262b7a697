"""Paired bootstrap over questions (Efron and Tibshirani 1993)."""

import math
from collections.abc import Sequence
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


def mean(values: Sequence[float]) -> float:
    """The mean, whatever the order of the values; 0 for none."""
    return math.fsum(values) / len(values) if values else 0.0


def paired(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Difference:
    """The difference of two measurements of the same questions, in the same order."""
    differences = np.array(after, float) - np.array(before, float)
    if not differences.size or not differences.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    draws = np.random.default_rng(seed).integers(len(differences), size=(RESAMPLES, len(differences)))
    means = differences[draws].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(mean(differences.tolist()), float(low), float(high), float((means >= 0).mean()))
