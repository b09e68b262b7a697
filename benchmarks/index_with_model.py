"""CPU seconds of the whole process that indexes 250,000 tokens by a language model, requests, tokens, memory.

    python -m benchmarks.index_with_model                       # claims off, then claims on
    python -m benchmarks.index_with_model --claims off --batches 4 --profile index.prof

`graphrag-assets index` with gleaning, summaries, reports and embeddings, in text units of 1,200 tokens that
overlap by 100. The model is the test server, which runs in a process of its own and answers at once: what is measured
is the price of everything but the model. Then the same again over the same input. Last, what `import litellm` takes by
itself on this machine at this moment: the CPU seconds of a shared machine vary by half, their ratio to it by less.
"""

import argparse
import compileall
import json
import os
import sqlite3
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.index_million_tokens import repetitions, sample_files
from graphrag_assets.runtime.processes import peak_megabytes
from graphrag_assets.text.words import count_tokens
from tests.model_index import PROJECT, ModelIndex, server_process

CPU_SECONDS = 12.0


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_seconds: float
    seconds: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=250_000)
    parser.add_argument("--documents", type=int, default=82)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--claims", choices=["off", "on", "both"], default="both")
    parser.add_argument("--profile", help="file for cProfile's figures of the (last) first run, main thread only")
    options = parser.parse_args()
    console = Console()
    compile_package()
    claims = {"off": [False], "on": [True], "both": [False, True]}[options.claims]
    for with_claims in claims:
        with tempfile.TemporaryDirectory() as folder:
            documents = Path(folder) / "input"
            written = write_corpus(documents, options.tokens, options.documents, options.batches)
            table, first = measure(Path(folder) / "index", documents, with_claims, options.profile)
            table.title = (
                f"{written:,} tokens, {options.documents} documents, {options.batches} batches, "
                f"claims {'on' if with_claims else 'off'}"
            )
            console.print(table)
        if not with_claims:
            kept = first.cpu_seconds <= CPU_SECONDS
            console.print(f"{first.cpu_seconds:.1f} CPU seconds, {'at most' if kept else 'more than'} {CPU_SECONDS:g}.")


def write_corpus(folder: Path, tokens: int, documents: int, batches: int) -> int:
    """So many documents of equal length in so many folders; returns their tokens in all.

    Real text, cut between paragraphs; each repetition of it has names of its own.
    """
    paragraphs = (
        (paragraph, count_tokens([paragraph])[0] + 1)
        for text in repetitions([path.read_text(encoding="utf-8") for path in sample_files()])
        for paragraph in text.split("\n\n")
        if paragraph.strip()
    )
    written = 0
    for number in range(documents):
        parts: list[str] = []
        while written < tokens * (number + 1) / documents:
            paragraph, size = next(paragraphs)
            parts.append(paragraph)
            written += size
        batch = folder / f"batch-{number * batches // documents}"
        batch.mkdir(parents=True, exist_ok=True)
        (batch / f"document-{number:03}.md").write_text("\n\n".join(parts), encoding="utf-8")
    return written


def measure(folder: Path, documents: Path, claims: bool, profile: str | None) -> tuple[Table, Cost]:
    """Index twice; a table of both runs, and what the first took."""
    more = {
        "CLAIMS": "model" if claims else "off",
        "CHUNKING": "tokens",
        "CHUNK_SIZE": "1200",
    }
    with server_process() as url:
        index = ModelIndex(folder, url, documents, more)
        first, first_counts = cost(index, profile), counts(url)
        paid, found = tokens_paid(index), rows_found(index)
        second, second_counts = cost(index), counts(url)
    table = Table("", "first run", "same input again")
    tasks = {name for name in second_counts if name.startswith("task ")}
    for task in sorted(tasks):
        n = first_counts.get(task, 0)
        table.add_row(f"requests {task.removeprefix('task ')}", f"{n:,}", f"{second_counts[task] - n:,}")
    n = first_counts["requests"]
    table.add_row("requests", f"{n:,}", f"{second_counts['requests'] - n:,}")
    for task, prompt, answer in paid:
        table.add_row(f"prompt, answer tokens {task}", f"{prompt:,}, {answer:,}", "")
    chats = [row for row in paid if row[0] != "embed"]
    table.add_row("prompt, answer tokens", f"{sum(row[1] for row in chats):,}, {sum(row[2] for row in chats):,}", "")
    table.add_row("found", ", ".join(f"{n:,} {name}" for name, n in found), "")
    table.add_row("CPU seconds", f"{first.cpu_seconds:.1f}", f"{second.cpu_seconds:.1f}")
    table.add_row("seconds", f"{first.seconds:.1f}", f"{second.seconds:.1f}")
    table.add_row("peak MB", f"{first.peak_mb:,.0f}", f"{second.peak_mb:,.0f}")
    yardstick = import_of_litellm()
    ratios = (f"{run.cpu_seconds / yardstick.cpu_seconds:.1f}" for run in (first, second))
    table.add_row(f"`import litellm` ({yardstick.cpu_seconds:.1f} CPU s) = 1", *ratios)
    return table, first


def tokens_paid(index: ModelIndex) -> list[tuple[str, int, int]]:
    """Task, prompt tokens and answer tokens, by the server's count (a token is four characters)."""
    with closing(sqlite3.connect(index.folder / "index" / "ledger.sqlite")) as ledger:
        sums = "SELECT task, sum(prompt_tokens), sum(completion_tokens) FROM llm_calls"
        return ledger.execute(f"{sums} GROUP BY task ORDER BY task").fetchall()


def rows_found(index: ModelIndex) -> list[tuple[str, int]]:
    """What was extracted, and what it was merged to."""
    tables = ("entity_mentions", "relationship_mentions", "covariates", "entities", "relationships")
    with duckdb.connect(str(index.folder / "index" / "working.duckdb"), read_only=True) as working:
        return [(name, working.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]) for name in tables]


def compile_package() -> None:
    """As an installation does: where Python is told not to write bytecode, each process would compile all modules."""
    compileall.compile_dir(PROJECT / "graphrag_assets", quiet=1)


def import_of_litellm() -> Cost:
    """What `import litellm` takes by itself: the speed of the machine at this moment."""
    return cost_of([sys.executable, "-c", "import litellm"], os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"})


def cost(index: ModelIndex, profile: str | None = None) -> Cost:
    """What one `index` took, from the start of its process to its end."""
    index.folder.mkdir(parents=True, exist_ok=True)
    profiled = ["-m", "cProfile", "-o", str(Path(profile).absolute())] if profile else []
    command = [sys.executable, *profiled, "-m", "graphrag_assets", "index"]
    return cost_of(command, index.environment | {"PYTHONPATH": str(PROJECT)}, index.folder / "index.log")


def cost_of(command: list[str], environment: dict[str, str], log: Path = Path(os.devnull)) -> Cost:
    """What a command took that succeeds; what it prints goes to `log`."""
    began = time.monotonic()
    pid = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    peak = 0.0
    while not (ended := os.wait4(pid, os.WNOHANG))[0]:
        peak = max(peak, peak_megabytes(pid) or 0)  # the system's own figure begins again with each stage
        time.sleep(0.02)
    _, status, used = ended
    if status:
        raise SystemExit(log.read_text(encoding="utf-8") or f"{' '.join(command)} failed.")
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, max(peak, used.ru_maxrss * 1024 / 1e6))


def counts(url: str) -> dict[str, int]:
    """What the server has counted so far."""
    with urllib.request.urlopen(f"{url}/stats") as answer:
        counted: dict[str, int] = json.load(answer)["counts"]
        return counted


if __name__ == "__main__":
    main()
