"""Usage of model calls, by task."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Usage:
    """Sums over calls. Tokens and cost are those paid now; answers from the ledger count only as `ledger_hits`.

    `cached_tokens`: of the prompt tokens, those that the provider billed as found in its prompt cache. `seconds`: what
    a part of a search takes, by the clock.
    """

    calls: int = 0
    ledger_hits: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    retries: int = 0
    failures: int = 0
    dropped_records: int = 0
    guessed_repairs: int = 0
    invented_claims: int = 0
    failed_gleanings: int = 0
    seconds_waiting: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)})

    def as_dict(self) -> dict[str, int | float]:
        """Name and value of each sum over calls: without the seconds of a search."""
        return {name: value for name, value in asdict(self).items() if name != "seconds"}


class UsageMeter:
    """Usage by task. Meters can be added, so each stage, batch or query may have its own."""

    def __init__(self, by_task: Mapping[str, Usage] | None = None):
        self._by_task: dict[str, Usage] = defaultdict(Usage, by_task or {})

    def add(self, task: str, usage: Usage) -> None:
        """Count `usage` under `task`."""
        self._by_task[task] += usage

    @property
    def by_task(self) -> dict[str, Usage]:
        """Usage of each task, by name."""
        return dict(sorted(self._by_task.items()))

    @property
    def total(self) -> Usage:
        """The sum over all tasks."""
        return sum(list(self._by_task.values()), Usage())  # a copy: other threads add tasks meanwhile

    def __add__(self, other: "UsageMeter") -> "UsageMeter":
        merged = UsageMeter(self._by_task)
        for task, usage in other._by_task.items():
            merged.add(task, usage)
        return merged
