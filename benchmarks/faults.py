"""An index made with faults equals the clean one, and each fault costs one request.

    python -m benchmarks.faults                       # 5 % 429, 2 % 500, 2 % dropped, 2 % malformed answers
    python -m benchmarks.faults --seed 3 --fault 429=0.2

Runs `graphrag-assets index` twice over data/input, chat and embedding model being the test server: once
without faults and once with. Ends with 1 when a table differs or a request is missing or too many.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.model_index import SAMPLE_INPUT, ModelIndex, Tables, differences
from tests.openai_server import FaultPlan, running

FAULTS = ("429=0.05", "500=0.02", "closed=0.02", "malformed-content=0.02")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", action="append", metavar="NAME=SHARE", help=f"default: {', '.join(FAULTS)}")
    parser.add_argument("--input", type=Path, default=SAMPLE_INPUT)
    options = parser.parse_args()
    shares = {name: float(share) for name, _, share in (fault.partition("=") for fault in options.fault or FAULTS)}

    with tempfile.TemporaryDirectory() as folder:
        clean, clean_counts, clean_seconds = index(Path(folder) / "clean", options.input, FaultPlan())
        faulty, counts, seconds = index(Path(folder) / "faulty", options.input, FaultPlan(shares, options.seed))

    faults = {name.removeprefix("fault "): n for name, n in counts.items() if name.startswith("fault ")}
    extra = counts["requests"] - clean_counts["requests"]
    table = Table("", "clean", "with faults", title=f"graphrag-assets index, seed {options.seed}")
    table.add_row("requests", str(clean_counts["requests"]), str(counts["requests"]))
    for name in shares:
        table.add_row(f"fault {name}", "0", str(faults.get(name, 0)))
    table.add_row("seconds", f"{clean_seconds:.1f}", f"{seconds:.1f}")
    table.add_row("rows, all tables", *(f"{sum(map(len, made.values())):,}" for made in (clean, faulty)))
    console = Console()
    console.print(table)
    differing = differences(clean, faulty)
    for line in differing:
        console.print(line, markup=False)
    console.print(f"{extra} requests more, {sum(faults.values())} faults; {len(differing)} tables differ.")
    sys.exit(bool(differing) or extra != sum(faults.values()))


def index(folder: Path, documents: Path, faults: FaultPlan) -> tuple[Tables, dict[str, int], float]:
    """The tables of an index, what the server counted, and seconds."""
    with running(faults=faults, record=False) as server:
        made, began = ModelIndex(folder, server.url, documents), time.monotonic()
        made.run()
        return made.tables(), dict(server.counts), time.monotonic() - began


if __name__ == "__main__":
    main()
