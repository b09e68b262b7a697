"""How many of the passages that answer a question are found: each search method beside BM25, vectors and both fused.

    python -m benchmarks.retrieval_quality                     # hotpotqa-100 from ../shared/data, sample corpus
    python -m benchmarks.retrieval_quality --folder build/quality --hotpotqa path/to/hotpotqa-100

The embedding model is that of the settings: GRAPHRAG_EMBEDDING_MODEL=onnx:bge-small measures the packaged one. Unset,
there are no vectors.

Collections:
    titled    HotpotQA, one passage a row with `title` and `text`
    untitled  the same rows without their titles
    sections  the same passages as sections of documents of ten, under their titles as headings

Columns: recall@5, the share of the gold passages among the first five; all@8, the share of questions with all of them
among the first eight; and how much recall@5 differs from BM25's, with a 95 % interval by paired bootstrap over the
questions. A document with several text units counts once, at its best one; of sections, each text unit counts.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from graphrag_assets.query import GraphRAG

PROJECT = Path(__file__).parent.parent
HOTPOTQA = PROJECT.parent / "shared" / "data" / "hotpotqa-100"
LIMIT = 30  # text units looked at, for ten documents
CONTEXT_TOKENS = 1_500
_RESAMPLES = 10_000
_SECTIONS = 10

METHODS: dict[str, Callable[[GraphRAG, str], list[int]]] = {
    "BM25": lambda rag, question: _retrieved(rag, question, "words"),
    "vectors": lambda rag, question: _retrieved(rag, question, "vectors"),
    "both (retrieve text)": lambda rag, question: _retrieved(rag, question, "text"),
    "basic": lambda rag, question: _sources(rag, "basic", question, k=LIMIT),
    "retrieve graph": lambda rag, question: _retrieved(rag, question, "graph"),
    "local": lambda rag, question: _sources(rag, "local", question),
}


def methods(rag: GraphRAG) -> dict[str, Callable[[GraphRAG, str], list[int]]]:
    """The methods that the index allows: by vectors only with an embedding model."""
    has_vectors = rag.index.reader().embedding is not None
    return {name: find for name, find in METHODS.items() if has_vectors or name != "vectors"}


@dataclass(frozen=True)
class Collection:
    """Files by name, and questions with the texts of their gold passages.

    `by_document`: documents are what is to be found, else text units.
    """

    name: str
    files: dict[str, str]
    questions: list[tuple[str, list[str]]]
    by_document: bool = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotpotqa", type=Path, default=HOTPOTQA, help="folder with corpus.json and questions.json")
    parser.add_argument("--folder", type=Path, help="where indexes are kept; default: made for this run only")
    options = parser.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if not options.hotpotqa.is_dir():
            console.print(f"No folder {options.hotpotqa}: HotpotQA is left out. Give it by --hotpotqa.")
        for each in collections(options.hotpotqa):
            console.print(_table(each, index(folder / each.name, each.files)))
        console.print(_facts(index(folder / "sample", {}, PROJECT / "data" / "input")))


def collections(hotpotqa: Path) -> Iterator[Collection]:
    """The collections; those from HotpotQA only where its folder exists."""
    if hotpotqa.is_dir():
        corpus = {title: "".join(s).strip() for title, s in json.loads((hotpotqa / "corpus.json").read_text()).items()}
        asked = json.loads((hotpotqa / "questions.json").read_text())
        gold = [(q["question"], [corpus[title] for title in {t for t, _ in q["supporting_facts"]}]) for q in asked]
        titled = [{"id": str(n), "title": title, "text": text} for n, (title, text) in enumerate(corpus.items())]
        yield Collection("titled", {"passages.jsonl": _lines(titled)}, gold)
        untitled = [{"id": row["id"], "text": row["text"]} for row in titled]
        yield Collection("untitled", {"passages.jsonl": _lines(untitled)}, gold)
        shuffled = random.Random(0).sample(titled, len(titled))  # the passages of a question are neighbors in the set
        sections = [f"## {row['title']}\n\n{row['text']}\n" for row in shuffled]
        documents = {
            f"volume/part-{n:03}.md": f"# Part {n}\n\n" + "\n".join(sections[n : n + _SECTIONS])
            for n in range(0, len(sections), _SECTIONS)
        }
        yield Collection("sections", documents, gold, by_document=False)


def _lines(rows: list[dict[str, str]]) -> str:
    return "\n".join(map(json.dumps, rows))


def index(data: Path, files: dict[str, str], folder: Path | None = None) -> GraphRAG:
    """The index of these files, or of a folder; made if `data` has none."""
    if not (data / "index" / "graphrag.duckdb").exists():
        for name, text in files.items():
            path = data / "input" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        environment = {**os.environ, "GRAPHRAG_DATA": str(data), "GRAPHRAG_INPUT": str(folder or data / "input")}
        done = subprocess.run(
            [sys.executable, "-m", "graphrag_assets", "index"], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
    return GraphRAG(data / "index")


def _retrieved(rag: GraphRAG, question: str, method: str) -> list[int]:
    return rag.retrieve(question, LIMIT, method)["human_readable_id"].to_list()


def _sources(rag: GraphRAG, method: str, question: str, **options: int) -> list[int]:
    """The text units of a context in the order of its Sources, those without room included."""
    frames = rag.context(method, question, **options).frames
    return frames["sources"]["human_readable_id"].to_list()[:LIMIT]


def recall(
    collection: Collection, rag: GraphRAG, find: Callable[[GraphRAG, str], list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """For each question the share of its gold passages among the first five found, and whether eight hold them all."""
    units = rag.sql("SELECT human_readable_id, document_id, text FROM text_units").rows()
    place_of = {number: document if collection.by_document else str(number) for number, document, _ in units}
    first, complete = [], []
    for question, texts in collection.questions:
        gold = {place_of[_containing(units, text)] for text in texts}
        found = list(dict.fromkeys(place_of[number] for number in find(rag, question)))
        first.append(len(gold.intersection(found[:5])) / len(gold))
        complete.append(gold <= set(found[:8]))
    return np.array(first), np.array(complete)


def _table(collection: Collection, rag: GraphRAG) -> Table:
    table = Table(title=f"{collection.name}: {len(collection.questions)} questions", title_justify="left")
    for heading in ("method", "recall@5", "all@8", "recall@5 against BM25"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    bm25, _ = recall(collection, rag, METHODS["BM25"])
    for name, find in methods(rag).items():
        first, complete = recall(collection, rag, find)
        low, high = bootstrap(first - bm25)
        against = f"{100 * (first - bm25).mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        table.add_row(
            name,
            f"{100 * first.mean():.1f}",
            f"{100 * complete.mean():.1f}",
            "" if name == "BM25" else against,
        )
    return table


def _containing(units: list[tuple[int, str, str]], text: str) -> int:
    """The text unit in which a passage begins."""
    start = text[:60]
    return next(number for number, _, unit in units if start in unit)


def bootstrap(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences, by resampling the questions (Efron and Tibshirani 1993)."""
    draw = np.random.default_rng(seed)
    means = differences[draw.integers(len(differences), size=(_RESAMPLES, len(differences)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def answers_held(rag: GraphRAG, tokens: int = CONTEXT_TOKENS) -> dict[str, list[bool]]:
    """By kind of question in tests/ground_truth.json: whether a local context of so many tokens holds all answers."""
    found: dict[str, list[bool]] = {}
    for question in json.loads((PROJECT / "tests" / "ground_truth.json").read_text(encoding="utf-8")):
        text = _plain(rag.context("local", question["question"], max_context_tokens=tokens).text)
        found.setdefault(question["kind"], []).append(all(_plain(a) in text for a in question["answer_contains"]))
    return found


def _facts(rag: GraphRAG) -> Table:
    table = Table(title=f"sample corpus: answers in a local context of {CONTEXT_TOKENS:,} tokens", title_justify="left")
    for heading in ("kind", "complete", "questions"):
        table.add_column(heading, justify="left" if heading == "kind" else "right")
    for kind, complete in answers_held(rag).items():
        table.add_row(kind, str(sum(complete)), str(len(complete)))
    return table


def _plain(text: str) -> str:
    """The text as it is compared: without emphasis, case and line breaks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("*", "").split())


if __name__ == "__main__":
    main()
