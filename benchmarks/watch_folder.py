"""A folder that is watched: seconds from a change of a file until the publication answers accordingly.

    python -m benchmarks.watch_folder

Starts `dagster dev` with GRAPHRAG_AUTOMATION=on and does nothing but write, edit and delete files. Ends with 1 when an
answer does not come within five minutes, or when a run failed (asked for over Dagster's GraphQL).
"""

import json
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from graphrag_assets.errors import StoreError
from graphrag_assets.query import GraphRAG
from tests.dagster_dev import ROOT, dagster_dev

PATIENCE_SECONDS = 300.0
RUNS = "{ runsOrError { ... on Runs { results { jobName status tags { key value } } } } }"


def main() -> None:
    table = Table("", "seconds until it is answered", title="a watched folder")
    with tempfile.TemporaryDirectory() as folder:
        data, documents = Path(folder), Path(folder) / "documents"
        shutil.copytree(ROOT / "data" / "input" / "1-beginnings", documents / "1-beginnings")
        letter = documents / "letters" / "letter.txt"

        def write(text: str) -> None:
            letter.parent.mkdir(exist_ok=True)
            letter.write_text(text, encoding="utf-8")

        def delete() -> None:
            letter.unlink()
            letter.parent.rmdir()

        with dagster_dev(data, documents, AUTOMATION="on") as url:
            for what, change, answered in (
                ("dagster dev started, five documents there", lambda: None, lambda: entities(data, "Cyrus Field")),
                (
                    "a file dropped in",
                    lambda: write("Robert Halpin wrote to Daniel Gooch from Valentia in May 1866."),
                    lambda: entities(data, "Robert Halpin"),
                ),
                (
                    "edited",
                    lambda: write("Josiah Latimer wrote to Daniel Gooch from Valentia in May 1866."),
                    lambda: entities(data, "Josiah Latimer") and not entities(data, "Robert Halpin"),
                ),
                ("deleted", delete, lambda: not entities(data, "Josiah Latimer")),
            ):
                table.add_row(what, f"{seconds(change, answered):.1f}")
            time.sleep(20)  # a tick more, in which nothing may happen
            runs = ask(url, RUNS)["data"]["runsOrError"]["results"]
    console = Console()
    console.print(table)
    failed = [run for run in runs if run["status"] != "SUCCESS"]
    console.print(f"{len(runs)} runs: {', '.join(sorted(run['jobName'] for run in runs))}; {len(failed)} failed.")
    sys.exit(bool(failed))


def seconds(change: Callable[[], None], answered: Callable[[], bool]) -> float:
    """Make the change; the seconds until it is answered."""
    began = time.monotonic()
    change()
    while not answered():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise SystemExit(f"Not answered within {PATIENCE_SECONDS:.0f} seconds.")
        time.sleep(0.2)
    return time.monotonic() - began


def entities(data: Path, title: str) -> bool:
    """Whether the publication has an entity of this title; it has none before there is one."""
    try:
        rag = GraphRAG(data / "index")
    except StoreError:
        return False
    return bool(rag.sql("SELECT count(*) FROM entities WHERE title = $title", {"title": title}).item())


def ask(url: str, query: str) -> dict:
    """The answer to a GraphQL query."""
    request = urllib.request.Request(
        f"{url}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
