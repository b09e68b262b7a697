"""Two processes that index batches with shared texts at once, on one ledger: nothing is paid for twice.

    python -m benchmarks.two_processes
    python -m benchmarks.two_processes --latency 0.5

The documents of data/input are in both batches, with some of its own in each. Two `graphrag-assets index
--batch …` begin at the same moment, chat and embedding model being the test server. Ends with 1 when one fails, when
a lock error is printed, or when anything is asked again that had been answered before.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.kills import sent_twice
from tests.model_index import SAMPLE_INPUT, ModelIndex, finish
from tests.openai_server import running

SHARED, OWN = "2-cable-of-1857-58", {"first": "1-beginnings", "second": "4-great-eastern"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds before each answer of the server")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, running(latency=options.latency) as server:
        documents = Path(folder) / "input"
        for batch, own in OWN.items():
            for source in (SHARED, own):
                shutil.copytree(SAMPLE_INPUT / source, documents / batch / source)
        index = ModelIndex(Path(folder) / "index", server.url, documents)
        both = [index.start("--batch", batch) for batch in OWN]
        printed = [finish(process) for process in both]
        again = sent_twice(server.requests)
        overlapping = Counter(str((request.path, request.body)) for request in server.requests)
    table = Table("task", "requests", title="two processes at once")
    for task, number in sorted(Counter(request.task for request in server.requests).items()):
        table.add_row(task, str(number))
    console.print(table)
    locks = sum("lock" in text.lower() for text in printed)
    console.print(
        f"{len(server.requests)} requests, {len(server.requests) - len(overlapping)} of them asked by both while "
        f"neither had the answer, {len(again)} although the answer was there; {locks} lock errors."
    )
    sys.exit(bool(again or locks))


if __name__ == "__main__":
    main()
