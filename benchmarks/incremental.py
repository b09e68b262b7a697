"""What a change costs: requests of the first index, a rerun, and of one edit, addition, deletion and move.

    python -m benchmarks.incremental                      # 200 documents, 100,000 tokens, 10 batches
    python -m benchmarks.incremental --documents 40 --tokens 20000

Every step is `graphrag-assets index`, with the test server as chat and embedding model and one gleaning. Ends
with 1 when a rerun asks or writes anything, an edit extracts more than three text units or rewrites more than 5 % of
the reports, or a move asks anything.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import write_corpus
from tests.model_index import ModelIndex
from tests.openai_server import OpenAIServer, running

TASKS = ("ExtractGraphWithClaims", "Summaries", "CommunityReport", "embedding")
GLEANINGS = 1


@dataclass(frozen=True)
class Step:
    """What one run of `index` asked and did. `reports`: rewritten; `written`: rows, in all tables."""

    name: str
    requests: dict[str, int]
    reports: int
    all_reports: int
    written: int
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.requests.values())

    @property
    def extracted(self) -> float:
        """Text units that were extracted: each takes a request and one per gleaning."""
        return self.requests["ExtractGraphWithClaims"] / (1 + GLEANINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--batches", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(record=False) as server:
        documents = Path(folder) / "input"
        tokens = write_corpus(documents, options.tokens, options.documents, options.batches)
        index = ModelIndex(Path(folder) / "data", server.url, documents)
        middle = documents / f"batch-{options.batches // 2}"
        steps = [
            take(index, server, name, change)
            for name, change in (
                ("first index", lambda: None),
                ("no change", lambda: None),
                ("one sentence edited", lambda: edit(middle)),
                ("one document added", lambda: add(middle)),
                ("one document deleted", lambda: delete(middle)),
                ("one document moved to another batch", lambda: move(middle, documents / "batch-0")),
            )
        ]
    console = Console()
    console.print(table(steps, f"{tokens:,} tokens, {options.documents} documents, {options.batches} batches"))
    broken = complaints(steps)
    for complaint in broken:
        console.print(complaint)
    sys.exit(bool(broken))


def edit(batch: Path) -> None:
    """A sentence in the middle of a document says something else."""
    file = sorted(batch.iterdir())[1]
    text = file.read_text(encoding="utf-8")
    sentences = text.split(". ")
    sentences[len(sentences) // 2] = "Nobody had expected that Robert Halpin would come aboard at Valentia"
    file.write_text(". ".join(sentences), encoding="utf-8")


def add(batch: Path) -> None:
    text = "Robert Halpin wrote to Daniel Gooch from Valentia. The letter reached London in May 1866. "
    (batch / "letter.md").write_text(text * 3, encoding="utf-8")


def delete(batch: Path) -> None:
    sorted(batch.iterdir())[2].unlink()


def move(batch: Path, other: Path) -> None:
    file = sorted(batch.iterdir())[3]
    shutil.move(file, other / file.name)


def take(index: ModelIndex, server: OpenAIServer, name: str, change: Callable[[], None]) -> Step:
    """Make the change, index, and count."""
    change()
    before, reports, last = dict(server.counts), fingerprints(index), rows_written(index)
    began = time.monotonic()
    index.run()
    seconds = time.monotonic() - began
    requests = {task: server.counts[f"task {task}"] - before.get(f"task {task}", 0) for task in TASKS}
    after = fingerprints(index)
    return Step(name, requests, len(after - reports), len(after), rows_written(index) - last, seconds)


def fingerprints(index: ModelIndex) -> set[str]:
    return {row[0] for row in query(index, "SELECT fingerprint FROM community_reports")}


def rows_written(index: ModelIndex) -> int:
    """Rows written or removed so far, over all runs."""
    rows = query(index, "SELECT coalesce(sum(inserted + deleted), 0)::BIGINT FROM index_runs")
    return rows[0][0] if rows else 0


def query(index: ModelIndex, sql: str) -> list[tuple]:
    path = index.folder / "index" / "working.duckdb"
    if not path.exists():
        return []
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def table(steps: list[Step], title: str) -> Table:
    shown = Table("", *TASKS, "requests", "reports rewritten", "rows written", "seconds", title=title)
    for step in steps:
        share = f"{step.reports} of {step.all_reports}"
        counts = (str(step.requests[task]) for task in TASKS)
        shown.add_row(step.name, *counts, str(step.total), share, f"{step.written:,}", f"{step.seconds:.1f}")
    return shown


def complaints(steps: list[Step]) -> list[str]:
    _, rerun, edited, _, _, moved = steps
    found = []
    if rerun.total or rerun.written:
        found.append(f"A rerun asked {rerun.total} times and wrote {rerun.written} rows.")
    if edited.extracted > 3:
        found.append(f"An edit extracted {edited.extracted:g} text units.")
    if edited.reports > 0.05 * edited.all_reports:
        found.append(f"An edit rewrote {edited.reports} of {edited.all_reports} reports.")
    if moved.total:
        found.append(f"A move asked {moved.total} times.")
    return found


if __name__ == "__main__":
    main()
