"""kill -9 at random moments costs no more than the requests in flight, and changes no table.

    python -m benchmarks.kill_and_rerun                    # 20 kills, a server that answers after 0.5 s
    python -m benchmarks.kill_and_rerun --kills 3 --seed 7

Each time `graphrag-assets index` begins an index of data/input, chat and embedding model being the test
server; its process group is killed at a random moment of the time an undisturbed run takes, and `index` runs again to
the end. In flight is what was asked and is not in the ledger. Ends with 1 when a table differs, or when more was asked
for than in the undisturbed run and in flight at the kill, or more was in flight than the limit of concurrency.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from graphrag_assets.settings import Settings
from tests.kills import index_once, kill_and_rerun
from tests.model_index import SAMPLE_INPUT, differences
from tests.openai_server import running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds before each answer of the server")
    parser.add_argument("--input", type=Path, default=SAMPLE_INPUT)
    options = parser.parse_args()
    chance, console, bad = random.Random(options.seed), Console(), 0
    table = Table("kill", "at s", "requests", "in flight", "after it", "extra", "tables", title="kill -9, then index")
    with tempfile.TemporaryDirectory() as folder, running(latency=options.latency) as server:
        clean, undisturbed, seconds = index_once(server, Path(folder) / "clean", options.input)
        console.print(f"Undisturbed: {undisturbed} requests, {seconds:.1f} s.")
        number = 0
        while number < options.kills:
            moment, made = chance.uniform(0, seconds), Path(folder) / "killed"
            killed = kill_and_rerun(server, made, options.input, lambda now, _, at=moment: now >= at)
            shutil.rmtree(made)
            if not killed.killed:  # this run was faster than the undisturbed one
                continue
            number += 1
            differing, extra = differences(clean, killed.tables or {}), killed.extra(undisturbed)
            bad += bool(differing) or not 0 <= extra <= killed.in_flight <= Settings().concurrency
            table.add_row(
                str(number),
                f"{moment:.2f}",
                *map(str, (killed.before, killed.in_flight, killed.after, extra)),
                "equal" if not differing else "\n".join(differing),
            )
            console.print(f"{number}: at {moment:.2f} s, {extra} extra, {len(differing)} tables differ", style="dim")
    console.print(table)
    console.print(
        f"{options.kills - bad} of {options.kills} kills cost at most what was in flight and changed nothing."
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
