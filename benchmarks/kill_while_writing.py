"""kill -9 while batches are committed and publications made: nothing lost, nothing doubled, every file opens.

    python -m benchmarks.kill_while_writing               # 100 kills
    python -m benchmarks.kill_while_writing --kills 10 --seed 3

A process goes round: one of three versions of the documents of each batch, index, publish. It is killed at a random
moment, again and again. After every kill each batch must be, as a whole, in the version it was committed in last or
the one under way; keys must be unique; the published file must open and hold together. At the end the index is
completed and compared with a fresh one. Ends with 1 when anything is amiss.
"""

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from graphrag_assets.assets.index import Index
from graphrag_assets.query import GraphRAG
from graphrag_assets.store.invariants import INVARIANTS
from tests.comparison import SENTENCES, facts, index_all
from tests.model_index import PROJECT

BATCHES = ("a", "b", "c", "d")
VERSIONS = 3
DANGLING = "SELECT count(*) FROM relationships WHERE source_id NOT IN (SELECT id FROM entities)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return
    console, chance = Console(), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, 0)
        use(root)
        index = Index(root / "index" / "working.duckdb")
        index_all(index)
        problems: list[str] = []
        commits = [last_run(index)]
        for number in range(options.kills):
            process = start(root)
            assert process.stdout is not None
            process.stdout.readline()  # it has begun
            time.sleep(chance.uniform(0.0, 4.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            problems += [f"kill {number + 1}: {problem}" for problem in amiss(root, index)]
            commits.append(last_run(index))
        index_all(index)
        fresh = root / "fresh"
        write(fresh, version_of(root))
        made = facts(index)
        use(fresh)
        other = Index(fresh / "index" / "working.duckdb")
        index_all(other)
        problems += [f"at the end {name} differs" for name, rows in facts(other).items() if made[name] != rows]
    for problem in problems:
        console.print(problem, markup=False)
    moved = sum(first != second for first, second in itertools.pairwise(commits))
    console.print(f"{options.kills} kills, {moved} of them after something was committed: {len(problems)} problems.")
    sys.exit(bool(problems))


def use(root: Path) -> None:
    os.environ |= {"GRAPHRAG_DATA": str(root), "GRAPHRAG_INPUT": str(root / "input")}


def write(root: Path, version: int) -> None:
    """The documents of all batches in a version: the same batch never has a sentence of two versions."""
    for place, batch in enumerate(BATCHES):
        folder = root / "input" / batch
        folder.mkdir(parents=True, exist_ok=True)
        first = (place * VERSIONS + version) * 3
        (folder / "text.txt").write_text(f"Version {version}. " + " ".join(SENTENCES[first : first + 3]))


def version_of(root: Path) -> int:
    text = (root / "input" / BATCHES[0] / "text.txt").read_text()
    return int(text.split(".")[0].split()[1])


def start(root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.kill_while_writing", "--worker", str(root)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, start_new_session=True)


def work(root: Path) -> None:
    """Round and round until killed."""
    use(root)
    index = Index(root / "index" / "working.duckdb")
    print("begun", flush=True)
    while True:
        write(root, (version_of(root) + 1) % VERSIONS)
        index_all(index)


def amiss(root: Path, index: Index) -> list[str]:
    """What does not hold after a kill."""
    found = []
    texts = index.working.read("SELECT batch, string_agg(text, ' ' ORDER BY id) AS text FROM documents GROUP BY batch")
    units = dict(index.working.read("SELECT batch, string_agg(text, '') FROM text_units GROUP BY batch").iter_rows())
    if sorted(texts["batch"]) != sorted(BATCHES):
        found.append(f"batches {sorted(texts['batch'])}")
    for batch, text in texts.iter_rows():
        if text.count("Version") != 1 or text.strip() != units.get(batch, "").strip():
            found.append(f"batch {batch} is of two versions")
    unique = next(invariant for invariant in INVARIANTS if invariant.name == "keys_are_unique")
    if not index.working.read(str(unique.find)).is_empty():
        found.append("a key is there twice")
    rag = GraphRAG(root / "index")
    if rag.sql(DANGLING).item() or not rag.sql("SELECT count(*) FROM entities").item():
        found.append("the publication does not hold together")
    return found


def last_run(index: Index) -> object:
    return index.working.read("SELECT max(committed_at) FROM index_runs").item()


if __name__ == "__main__":
    main()
