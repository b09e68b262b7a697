"""What a small change costs in processor time, rows and bytes, for growing corpora, on the embedded default.

    python -m benchmarks.cost_of_change                      # 50,000, 250,000 and 1,000,000 tokens
    python -m benchmarks.cost_of_change --tokens 3500000

Every step is the command `graphrag-assets index` in a process of its own. Steps: the first index; the same input again,
twice, of which the cheaper counts; one sentence edited in the middle of a document. The corpus is that of
`index_million_tokens`: each repetition of the text has names of its own. "beyond": more than with nothing due, the part
that should follow the change. Of the edit, the CPU seconds of each stage are shown. `import litellm` at the same moment
gives the speed of the machine.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.incremental import edit
from benchmarks.index_million_tokens import sample_files, write_corpus
from benchmarks.index_with_model import Cost, cost_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, action="append", help="corpus size; may be given several times")
    options = parser.parse_args()
    console = Console()
    unit = cost_of([sys.executable, "-c", "import litellm"], os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"})
    console.print(f"`import litellm`: {unit.cpu_seconds:.1f} CPU s")
    for tokens in options.tokens or [50_000, 250_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            console.print(measure(Path(folder), tokens))


def measure(folder: Path, tokens: int) -> Table:
    """Index a corpus of so many tokens, again, and after an edit."""
    written = write_corpus(folder / "input", tokens, sample_files())
    batches = sorted((folder / "input").iterdir())
    first = index(folder)
    idle = min((index(folder) for _ in range(2)), key=lambda cost: cost.cpu_seconds)
    last = one(folder, "SELECT max(committed_at) FROM index_runs")
    edit(batches[len(batches) // 2])
    edited = index(folder, "benchmarks.stage_cpu", str(folder / "stages.json"))
    rows = one(
        folder, "SELECT sum(inserted + deleted)::BIGINT FROM index_runs WHERE committed_at > $last", {"last": last}
    )
    files = len(list((folder / "input").rglob("*.md")))
    table = Table(
        "",
        "CPU s",
        "beyond",
        "seconds",
        "peak MB",
        "rows written",
        title=f"{written:,} tokens, {files} documents, {len(batches)} batches",
    )
    table.add_row("first index", *shown(first), "")
    table.add_row("nothing due", *shown(idle), "0")
    table.add_row("one sentence edited", *shown(edited, idle), f"{rows:,}")
    for stage, seconds in json.loads((folder / "stages.json").read_text(encoding="utf-8")).items():
        table.add_row(f"  {stage}", f"{seconds:.1f}", "", "", "", "")
    return table


def index(folder: Path, *command: str) -> Cost:
    """What one `index` of the data folder took, or `command`, which performs it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "DAGSTER_"))}
    return cost_of(
        [sys.executable, "-m", *(command or ("graphrag_assets", "index"))],
        kept | {"GRAPHRAG_DATA": str(folder)},
        folder / "index.log",
    )


def one(folder: Path, query: str, parameters: dict[str, object] | None = None) -> object:
    """The single value of a query of the working database."""
    with duckdb.connect(str(folder / "index" / "working.duckdb"), read_only=True) as connection:
        ((value,),) = connection.execute(query, parameters or {}).fetchall()
    return value


def shown(cost: Cost, without: Cost | None = None) -> tuple[str, str, str, str]:
    beyond = f"{cost.cpu_seconds - without.cpu_seconds:.1f}" if without else ""
    return f"{cost.cpu_seconds:.1f}", beyond, f"{cost.seconds:.1f}", f"{cost.peak_mb:,.0f}"


if __name__ == "__main__":
    main()
