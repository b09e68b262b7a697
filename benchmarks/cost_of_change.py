"""What a small change costs in processor time, rows and bytes, for growing corpora, on the embedded default.

    python -m benchmarks.cost_of_change                      # 50,000, 250,000 and 1,000,000 tokens
    python -m benchmarks.cost_of_change --tokens 10000000 --folder /big/disk    # the index is left there

Every step is the command `graphrag-assets index` in a process of its own. Steps: the first index; the same input again,
twice, of which the cheaper counts; one sentence edited in the middle of a document. The corpus is that of
`index_million_tokens`: each repetition of the text has names of its own. "beyond": more than with nothing due, the part
that should follow the change. CPU seconds and peak memory of the stages are shown of the first index and of the edit.
Bytes written: those of the blocks of the published file that differ from the one before. `import litellm` at the same
moment gives the speed of the machine.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.index_million_tokens import sample_files, write_corpus
from benchmarks.index_with_model import Cost, compile_package, cost_of, import_of_litellm

HEADERS, BLOCK = 3 * 4096, 2**18
"""The bytes of a DuckDB file before its blocks, and of a block."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, action="append", help="corpus size; may be given several times")
    parser.add_argument("--folder", type=Path, help="where the index is written and left; default: a temporary one")
    options = parser.parse_args()
    console = Console()
    compile_package()
    console.print(f"`import litellm`: {import_of_litellm().cpu_seconds:.1f} CPU s")
    for tokens in options.tokens or [50_000, 250_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            console.print(measure(options.folder or Path(folder), tokens))


def edit(batch: Path) -> None:
    """A sentence in the middle of a document says something else."""
    file = sorted(batch.iterdir())[1]
    sentences = file.read_text(encoding="utf-8").split(". ")
    sentences[len(sentences) // 2] = "Nobody had expected that Robert Halpin would come aboard at Valentia"
    file.write_text(". ".join(sentences), encoding="utf-8")


def measure(folder: Path, tokens: int) -> Table:
    """Index a corpus of so many tokens, again, and after an edit."""
    written = write_corpus(folder / "input", tokens, sample_files())
    batches = sorted((folder / "input").iterdir())
    first = index(folder, "benchmarks.stage_cpu", str(folder / "first.json"))
    before = (folder / "index" / "graphrag.duckdb").resolve()
    idle = min((index(folder) for _ in range(2)), key=lambda cost: cost.cpu_seconds)
    last = one(folder, "SELECT max(committed_at) FROM index_runs")
    edit(batches[len(batches) // 2])
    edited = index(folder, "benchmarks.stage_cpu", str(folder / "edited.json"))
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
        "bytes written",
        title=f"{written:,} tokens, {files} documents, {len(batches)} batches",
    )
    table.add_row("first index", *shown(first))
    add_stages(table, folder / "first.json")
    table.add_row("nothing due", *shown(idle), "0")
    share = written_share(before, (folder / "index" / "graphrag.duckdb").resolve())
    table.add_row("one sentence edited", *shown(edited, idle), f"{rows:,}", f"{share:.1%}")
    add_stages(table, folder / "edited.json")
    return table


def add_stages(table: Table, costs: Path) -> None:
    for stage, (seconds, peak_mb) in json.loads(costs.read_text(encoding="utf-8")).items():
        table.add_row(f"  {stage}", f"{seconds:.1f}", "", "", f"{peak_mb:,.0f}")


def written_share(before: Path, after: Path) -> float:
    """The share of the blocks of a published file that differ from the file before it."""
    blocks = [
        np.memmap(path, np.uint64, "r", HEADERS)[: (path.stat().st_size - HEADERS) // BLOCK * BLOCK // 8]
        for path in (before, after)
    ]
    old, new = (block.reshape(-1, BLOCK // 8) for block in blocks)
    common = min(len(old), len(new))
    differing = sum(not np.array_equal(old[n], new[n]) for n in range(common))
    return (differing + len(new) - common) / len(new)


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
