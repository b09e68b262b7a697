"""What a soak has done and found."""

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
    """Counts by what was done, and violations."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
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

    def print(self) -> None:
        table = Table("what", "number", title="Soak")
        table.columns[1].justify = "right"
        for what, number in sorted(self.counts.items()):
            table.add_row(what, f"{number:,}")
        table.add_row("violations", f"{len(self.violations):,}")
        self.console.print(table)
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
