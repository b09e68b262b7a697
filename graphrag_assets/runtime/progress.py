"""Logs the progress and usage of a long stage every few seconds."""

import logging
import time
from collections.abc import Callable

from graphrag_assets.contracts.usage import Usage

log = logging.getLogger(__name__)
SECONDS_BETWEEN_LINES = 5.0
_last_line = float("-inf")  # of all stages that run at the same time


class Progress:
    """Counts the completed items of `total`, which are called `what`; `used` gives the usage of models so far."""

    def __init__(self, what: str, total: int, used: Callable[[], Usage] | None = None):
        self.what, self.total, self.done = what, total, 0
        self._used = used
        self._before = used() if used else None
        self._began = time.monotonic()

    def advance(self, n: int = 1) -> None:
        """Count `n` more completed items; log a line if the last one is old enough."""
        self.done += n
        self.tell()

    def tell(self) -> None:
        """Log a line if the last one is old enough, even without further progress."""
        global _last_line
        now = time.monotonic()
        if now - max(self._began, _last_line) >= SECONDS_BETWEEN_LINES:
            _last_line = now
            log.info("%s", self.line(now - self._began))

    def line(self, seconds: float) -> str:
        """Return the progress message after so many seconds: done and total, rate, tokens, cost, and the time left."""
        rate = self.done / seconds if seconds else 0.0
        parts = [f"{self.done:,} of {self.total:,} {self.what}", f"{rate:.1f} per second"]
        if self._used and self._before:
            now, before = self._used(), self._before
            tokens = now.prompt_tokens + now.completion_tokens - before.prompt_tokens - before.completion_tokens
            parts.append(f"{tokens:,} tokens, ${now.cost_usd - before.cost_usd:.4f}")
        if rate:
            parts.append(f"about {duration_in_words((self.total - self.done) / rate)} left")
        return "; ".join(parts)


def duration_in_words(seconds: float) -> str:
    """Seconds, minutes and seconds, or hours and minutes."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
