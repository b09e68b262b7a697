"""What a soak has done and found."""

import math
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tests.model_index import PROJECT, kill

SECRETS = ("sk-plantedsoaksecret0123456789", "A secret of Robert Halpin")
DEADLINE = 300.0
"""Seconds after which a process hangs; none needs a tenth of it."""


@dataclass
class Summary:
    """Counts by what was done, violations, and requirements: what, the number required, that reached, whether it holds."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    requirements: list[tuple[str, str, int, bool]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    console: Console = field(default_factory=lambda: Console(width=150, highlight=False, markup=False))

    def tell(self, line: str) -> None:
        self.console.print(f"{(time.monotonic() - self.began) / 60:5.1f} min  {line}", soft_wrap=True)

    def check(self, holds: bool, problem: str) -> bool:
        """Record a violation unless `holds`."""
        if not holds:
            self.violations.append(problem)
            self.tell(f"VIOLATION: {problem}")
        return holds

    def check_text(self, text: str, where: str) -> None:
        """No traceback and no planted secret."""
        self.check("Traceback (most recent call last)" not in text, f"traceback in {where}: {text[-3000:]}")
        for secret in SECRETS:
            self.check(secret not in text, f"secret in {where}")

    def require(self, what: str, at_least: float = 0, at_most: float = math.inf) -> None:
        """The count of `what` must be within these limits; a fraction of one is one."""
        n, minimum = self.counts[what], math.ceil(at_least)
        required = f"{minimum:,}" if at_most == math.inf else f"at most {at_most:,.0f}"
        holds = minimum <= n <= at_most
        self.requirements.append((what, required, n, holds))
        self.check(holds, f"{what}: required {required}, reached {n:,}")

    def print(self) -> None:
        table = Table("what", "number", title="Soak")
        table.columns[1].justify = "right"
        for what, number in sorted(self.counts.items()):
            table.add_row(what, f"{number:,}")
        table.add_row("violations", f"{len(self.violations):,}")
        self.console.print(table)
        required = Table("what", "required", "reached", "", title="Required and reached")
        for what, number, reached, holds in self.requirements:
            required.add_row(what, number, f"{reached:,}", "yes" if holds else "NO")
        self.console.print(required)
        for problem in self.violations:
            self.console.print(f"VIOLATION: {problem[:2000]}", soft_wrap=True)


def run_command(summary: Summary, *arguments: str) -> tuple[int, str]:
    """Status and output of `tests.soak.command`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.soak.command", *arguments],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        kill(process)
        summary.check(False, f"{' '.join(arguments)} hangs")
        return -9, ""
    summary.check_text(output, f"the output of {' '.join(arguments)}")
    return process.returncode, output
