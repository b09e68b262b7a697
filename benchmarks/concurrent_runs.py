"""Eight processes that index and publish at once, and a reader that never stops asking: nobody meets a lock.

    python -m benchmarks.concurrent_runs                  # 8 batches
    python -m benchmarks.concurrent_runs --batches 4

First every batch at once as a partition run of Dagster's multiprocess executor, each step in a process of its own,
while a publication made before is read. Then once more, every process being `graphrag-assets index --batch`:
the run of its batch, then graph, communities, reports, embeddings, publication. One reader opens the publication
again every 50 ms and asks; another keeps the first publication open throughout. Ends with 1 when a process fails, a
reader meets an error, or the index at the end is not the one that a single process makes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import dagster as dg
import duckdb
from rich.console import Console

from benchmarks.index_with_model import write_corpus
from graphrag_assets.errors import StoreError
from graphrag_assets.query import GraphRAG
from tests.model_index import PROJECT

COUNT = "SELECT (SELECT count(*) FROM documents) AS documents, (SELECT count(*) FROM entities) AS entities"
DANGLING = "SELECT count(*) FROM relationships WHERE source_id NOT IN (SELECT id FROM entities)"
SAME = """
SELECT title, type, description, frequency, degree FROM entities ORDER BY ALL
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=40_000)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        sys.exit(not partition_run(options.run))
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_corpus(root / "input", options.tokens, options.batches * 4, options.batches)
        batches = sorted(path.name for path in (root / "input").iterdir())
        index_of(root / "alone", root / "input").communicate()
        index_of(root / "together", root / "input", "--batch", batches[0]).communicate()
        (root / "dagster").mkdir()
        with dg.DagsterInstance.local_temp(str(root / "dagster")) as instance:
            instance.add_dynamic_partitions("document_batches", batches)
        problems = []
        for what, arguments in (
            ("partition runs by the multiprocess executor", ["benchmarks.concurrent_runs", "--run"]),
            ("commands that index and publish", ["graphrag_assets", "index", "--batch"]),
        ):
            reader, began = Reader(root / "together" / "index"), time.monotonic()
            reader.start()
            processes = [process_of(root, *arguments, batch) for batch in batches]
            outputs = [process.communicate()[0] for process in processes]
            reader.stop()
            failed = [out for process, out in zip(processes, outputs, strict=True) if process.returncode]
            problems += [*failed, *reader.errors]
            with duckdb.connect(str(root / "together" / "index" / "working.duckdb"), read_only=True) as working:
                done = working.execute("SELECT batch FROM batch_state WHERE extracted ORDER BY batch").fetchall()
            problems += [] if [row[0] for row in done] == batches else [f"indexed are only {done}"]
            console.print(
                f"{len(batches)} {what} at once in {time.monotonic() - began:.0f} s: {len(failed)} failed. "
                f"{reader.asked} questions to {len(reader.seen)} publications meanwhile: {len(reader.errors)} errors."
            )
        made, wanted = (GraphRAG(root / name / "index").sql(SAME) for name in ("together", "alone"))
    for line in problems:
        console.print(line, markup=False)
    same = made.equals(wanted)
    console.print(f"{made.height} entities, {'as' if same else 'NOT as'} one process makes them.")
    sys.exit(bool(problems or not same))


def index_batches_job() -> dg.JobDefinition:
    """The job index_batches, each step in a process of its own."""
    definitions = dg.Definitions.merge(
        dg.load_from_defs_folder(path_within_project=PROJECT / "graphrag_assets" / "defs"),
        dg.Definitions(executor=dg.multiprocess_executor),
    )
    return definitions.get_repository_def().get_job("index_batches")


def partition_run(batch: str) -> bool:
    """Run the job for a batch; whether it succeeded."""
    from benchmarks.concurrent_runs import index_batches_job as importable

    with dg.DagsterInstance.get() as instance:
        job = dg.reconstructable(importable)
        return dg.execute_job(job, instance=instance, tags={"dagster/partition": batch}).success


def process_of(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return start(root / "together", root / "input", {"DAGSTER_HOME": str(root / "dagster")}, *arguments)


def index_of(data: Path, documents: Path, *arguments: str) -> subprocess.Popen[str]:
    return start(data, documents, {}, "graphrag_assets", "index", *arguments)


def start(data: Path, documents: Path, more: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """`python -m` with these arguments, its index at `data`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "DAGSTER_"))}
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=PROJECT,
        env=kept | {"GRAPHRAG_DATA": str(data), "GRAPHRAG_INPUT": str(documents)} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Reader(threading.Thread):
    """Asks every 50 ms, each time with a new `GraphRAG`; keeps the first one open and asks it too."""

    def __init__(self, index: Path):
        super().__init__()
        self.index, self.asked, self.errors = index, 0, []
        self.seen: set[int] = set()
        self._over = threading.Event()

    def run(self) -> None:
        first: GraphRAG | None = None
        while not self._over.wait(0.05):
            try:
                rag = GraphRAG(self.index)
            except StoreError:
                if first:
                    self.errors.append("the index is gone")
                continue  # nothing is published yet
            first = first or rag
            try:
                for asked in (rag, first):
                    dangling = asked.sql(DANGLING).item()
                    if dangling or asked.sql(COUNT).is_empty():
                        self.errors.append(f"{dangling} relationships lead nowhere")
                    self.asked += 1
                self.seen.add(rag.index.reader().publication)
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        self._over.set()
        self.join()


if __name__ == "__main__":
    main()
