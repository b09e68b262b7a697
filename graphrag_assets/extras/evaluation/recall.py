"""How many gold passages a ranking has among its first, and how early."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

CUTOFFS = (2, 5, 10)
METRICS = (*(f"recall@{k}" for k in CUTOFFS), "MRR")


def ranks(ranking: Sequence[int], gold: Sequence[AbstractSet[int]]) -> list[int | None]:
    """For each gold passage the rank, from 1, of the first text unit that holds it; None if no one does."""
    return [next((rank for rank, unit in enumerate(ranking, 1) if unit in units), None) for units in gold]


def recall(found: Sequence[int | None]) -> dict[str, float]:
    """recall@2, @5 and @10: the share of the passages among the first. MRR: 1 / rank of the first passage."""
    reached = [rank for rank in found if rank is not None]
    metrics = {f"recall@{k}": sum(rank <= k for rank in reached) / len(found) for k in CUTOFFS}
    return metrics | {"MRR": 1 / min(reached) if reached else 0.0}
