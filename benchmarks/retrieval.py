"""Milliseconds from a question to its context, without a model: on synthetic indexes of growing size.

    python benchmarks/retrieval.py                       # 10,000, 100,000 and 1,000,000 entities
    python benchmarks/retrieval.py --entities 100000 --folder build/indexes --fail-above 1.5

Each index is measured in a process of its own: opening it, the first context (with all that is imported and read for
the first time), then p50 and p95 of many questions.
The least is given too: it is what other work on the same machine disturbs least.
Indexes are made once in --folder (see synthetic_index.py); that takes a few minutes and 5 GB for the largest.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from graphrag_assets.contracts.answering import Passage, Relevance
from graphrag_assets.embedded import EmbeddedAnswerer

# Milliseconds at the median, by number of entities, unless the row says otherwise.
TARGETS: dict[str, dict[int, float]] = {
    "local": {10_000: 25, 100_000: 45, 1_000_000: 120},
    "basic": {10_000: 25, 100_000: 40, 1_000_000: 120},
    "graph": {10_000: 15, 100_000: 25, 1_000_000: 40},
    "global": dict.fromkeys((10_000, 100_000, 1_000_000), 300),
    "lazy": {30_000: 150, 300_000: 400},  # 10,000 and 100,000 text units
    "open": dict.fromkeys((10_000, 100_000, 1_000_000), 100),
}
IMPORT_TARGET = 600
_WARM_UP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, action="append", help="index size; may be given several times")
    parser.add_argument("--folder", type=Path, help="where indexes are kept; default: built, then deleted")
    parser.add_argument("--questions", type=int, default=60, help="how many questions are asked")
    parser.add_argument("--fail-above", type=float, help="exit 1 when a median is above its target times this")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.questions)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        sizes = options.entities or [10_000, 100_000, 1_000_000]
        found = {size: _in_a_process(_index(folder, size), options.questions) for size in sizes}
    imported = _import_milliseconds()
    Console(width=110).print(_table(found, imported))
    worst = max(
        imported / IMPORT_TARGET,
        *(f[name]["p50"] / TARGETS[name][size] for size, f in found.items() for name in f if size in TARGETS[name]),
    )
    if options.fail_above and worst > options.fail_above:
        sys.exit(f"A target is missed by a factor of {worst:.2f}.")


def measure(path: Path, questions: int) -> dict[str, dict[str, float]]:
    """For each of open, local, basic, lazy, graph, global: first, p50 and p95 in milliseconds, and how much was done.

    `graph` is what ranking passages through the graph adds to ranking them by their text. `lazy` is with a model that
    answers at once, and finds every third text unit relevant.
    """
    from graphrag_assets.query import GraphRAG
    from graphrag_assets.query.passages import rank_passages
    from graphrag_assets.query.retrieval import Question
    from graphrag_assets.store.publication_reader import CurrentPublication

    found = {"open": _times(lambda _: CurrentPublication(path).reader(), list(range(21)))}
    rag = GraphRAG(path)
    asked = _questions(rag, questions)
    for name in ("local", "basic"):
        found[name] = _times(lambda question, name=name: rag.context(name, question), asked)
        found[name]["tokens"] = rag.context(name, asked[0]).tokens
    lazy = GraphRAG(path, answerer=EveryThird())
    found["lazy"] = _times(lambda question: lazy.context("lazy", question), asked[:25])
    reader = rag.index.reader()
    by_text, by_graph = (
        _times(lambda q, method=method: rank_passages(reader, Question(q), 100, method=method), asked)
        for method in ("text", "graph")
    )
    found["graph"] = {name: by_graph[name] - by_text[name] for name in by_graph}
    level = _level_with_about(rag, 10_000)
    found["global"] = _times(lambda q: rag.context("global", q, community_level=level), asked[:15])
    found["global"]["reports"] = rag.context("global", asked[0], community_level=level).frames["reports"].height
    return found


class EveryThird(EmbeddedAnswerer):
    """Finds every third text unit relevant."""

    async def atest(
        self, question: str, passages: Sequence[Passage], rarity: Mapping[str, float] | None = None
    ) -> Relevance:
        return Relevance({passage.number: (1,) for passage in passages if passage.number % 3 == 0})


def _questions(rag: Any, count: int) -> list[str]:
    """Questions about one or two entities, with other words of the language in them."""
    titles = rag.sql(
        "SELECT title FROM entities WHERE degree > 0 ORDER BY hash(human_readable_id, 3) LIMIT $n", {"n": 2 * count}
    )["title"].to_list()
    texts = rag.sql("SELECT text FROM text_units ORDER BY hash(human_readable_id, 5) LIMIT $n", {"n": count})
    middles = [" ".join(text.split()[10:13]) for text in texts["text"]]
    forms = ("Who is {0}?", "What did {0} do about {2} with {1}?", "How are {0} and {1} related?", "{2} at {0}?")
    return [
        forms[i % len(forms)].format(one, other, middle)
        for i, (one, other, middle) in enumerate(zip(titles[:count], titles[count:], middles, strict=True))
    ]


def _level_with_about(rag: Any, reports: int) -> int:
    levels = rag.sql("SELECT level, count(DISTINCT community) AS n FROM search.entity_communities GROUP BY level")
    return int(min(levels.iter_rows(), key=lambda row: (abs(row[1] - reports), row[0]))[0])


def _times(work: Callable[[Any], object], inputs: list[Any]) -> dict[str, float]:
    seconds = []
    for given in inputs:
        started = time.perf_counter()
        work(given)
        seconds.append(time.perf_counter() - started)
    warm = sorted(seconds[_WARM_UP:])
    at = {"p50": 0.5, "p95": 0.95}
    return {
        "first": 1e3 * seconds[0],
        "least": 1e3 * warm[0],
        **{name: 1e3 * warm[int(part * (len(warm) - 1))] for name, part in at.items()},
    }


def _index(folder: Path, entities: int) -> Path:
    path = folder / f"graphrag-{entities}.duckdb"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        subprocess.run(
            [sys.executable, Path(__file__).with_name("synthetic_index.py"), str(entities), draft], check=True
        )
        draft.rename(path)
    return path


def _in_a_process(path: Path, questions: int) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--measure", str(path), "--questions", str(questions)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def _import_milliseconds() -> float:
    program = "import time; t = time.perf_counter(); import graphrag_assets.query; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(7)]
    return 1e3 * sorted(float(run.stdout) for run in runs)[3]


def _table(found: dict[int, dict[str, dict[str, float]]], imported: float) -> Table:
    table = Table(title="Retrieval without a model, milliseconds")
    for heading in ("entities", "what", "first", "least", "p50", "target", "p95", ""):
        table.add_column(heading, justify="left" if heading in ("what", "") else "right")
    names = {
        "open": "open",
        "local": "local context",
        "basic": "basic context",
        "lazy": "lazy, all tests",
        "graph": "added by the graph",
        "global": "global batches",
    }
    for size, measured in found.items():
        for name, row in measured.items():
            target = TARGETS[name].get(size)
            amount = "".join(f"{row[unit]:,.0f} {unit}" for unit in ("tokens", "reports") if unit in row)
            table.add_row(
                f"{size:,}",
                names[name],
                *(f"{row[column]:,.1f}" for column in ("first", "least", "p50")),
                f"{target:,.0f}" if target else "",
                f"{row['p95']:,.1f}",
                amount,
            )
        table.add_section()
    table.add_row("", "import graphrag_assets.query", "", "", f"{imported:,.0f}", f"{IMPORT_TARGET}", "", "median of 7")
    return table


if __name__ == "__main__":
    main()
