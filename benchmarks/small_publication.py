"""What a small publication costs: CPU seconds of the stage `publication` after each of several edits, in one process.

    python -m benchmarks.small_publication

Two indexes with the embedded default: of two documents of two sentences, and of the sample corpus. Each edit inserts a
sentence with a new name. `import polars` in a process of its own gives the speed of the machine at the same moment.
"""

import contextlib
import io
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.index_with_model import cost_of
from benchmarks.stage_cpu import measure
from graphrag_assets.assets import publish
from graphrag_assets.cli import main as command

SAMPLE = Path(__file__).parents[1] / "data" / "input"
EDITS = 8
SHORT = {
    "one.md": "Cyrus Field met Daniel Gooch in London. The Great Eastern laid the cable.",
    "two.md": "William Thomson advised Cyrus Field. The Atlantic Telegraph Company paid.",
}


def main() -> None:
    unit = cost_of([sys.executable, "-c", "import polars"], dict(os.environ))
    table = Table("index", "median", "least", "most", title=f"CPU s; `import polars`: {unit.cpu_seconds:.2f}")
    for name in ("two short documents", "sample corpus"):
        with tempfile.TemporaryDirectory() as folder:
            documents = Path(folder) / "input"
            if name == "sample corpus":
                shutil.copytree(SAMPLE, documents)
            else:
                write_short(documents / "batch")
            costs = publications(Path(folder), documents)
        table.add_row(name, *(f"{value:.2f}" for value in (statistics.median(costs), min(costs), max(costs))))
    Console().print(table)


def write_short(batch: Path) -> None:
    batch.mkdir(parents=True)
    for file, text in SHORT.items():
        (batch / file).write_text(text, encoding="utf-8")


def publications(folder: Path, documents: Path) -> list[float]:
    """CPU seconds of the publication after each edit of the first document; that of the first index does not count."""
    os.environ["GRAPHRAG_DATA"] = str(folder)
    cost, costs = [0.0, 0.0], []
    work = publish.update_publication
    measure(cost, publish, "update_publication")
    edited = min(documents.rglob("*.md"))
    for number in range(EDITS + 1):
        before = cost[0]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            command(["index"], standalone_mode=False)
        costs.append(cost[0] - before)
        text = edited.read_text(encoding="utf-8")
        edited.write_text(text.replace(". ", f". Marker{number} visited Paris. ", 1), encoding="utf-8")
    publish.update_publication = work
    return costs[1:]


if __name__ == "__main__":
    main()
