"""Eight processes that index and publish at once, and a reader that never stops asking: nobody meets a lock.

    python -m benchmarks.concurrent_runs                  # 8 batches
    python -m benchmarks.concurrent_runs --batches 4

Each process is `python -m graphrag_assets index --batch …`: a Dagster run of its batch, then graph, communities,
reports, embeddings, publication. One reader opens the published index anew every 50 ms and asks; another keeps the
first publication open throughout. Ends with 1 when a process fails, a reader meets an error, or the index at the end
is not the one that a single process makes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

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
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_corpus(root / "input", options.tokens, options.batches * 4, options.batches)
        batches = sorted(path.name for path in (root / "input").iterdir())
        index_of(root / "alone", root / "input").communicate()
        reader = Reader(root / "together" / "index")
        began = time.monotonic()
        reader.start()
        processes = [index_of(root / "together", root / "input", "--batch", batch) for batch in batches]
        outputs = [process.communicate()[0] for process in processes]
        reader.stop()
        seconds = time.monotonic() - began
        failed = [out for process, out in zip(processes, outputs, strict=True) if process.returncode]
        made, wanted = (GraphRAG(root / name / "index").sql(SAME) for name in ("together", "alone"))
    for line in (*failed, *reader.errors):
        console.print(line, markup=False)
    console.print(
        f"{len(batches)} processes at once in {seconds:.0f} s: {len(failed)} failed. {reader.asked} questions to "
        f"{len(reader.seen)} publications while they ran: {len(reader.errors)} errors. "
        f"{made.height} entities, {'as' if made.equals(wanted) else 'NOT as'} one process makes them."
    )
    sys.exit(bool(failed or reader.errors or not made.equals(wanted)))


def index_of(data: Path, documents: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_", "DAGSTER_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "graphrag_assets", "index", *arguments],
        cwd=PROJECT,
        env=kept | {"GRAPHRAG_DATA": str(data), "GRAPHRAG_INPUT": str(documents)},
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
