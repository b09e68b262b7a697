"""How often answers of the embedded default are right, by their confidence.

    python -m benchmarks.answer_confidence
    python -m benchmarks.answer_confidence --folder build/quality --hotpotqa path/to/hotpotqa-100

An answer is right if it contains the expected texts: the answers of HotpotQA other than yes and no, and those of
tests/ground_truth.json for the sample corpus. Ends with status 1 if a higher level is right less often on a collection.
"""

import argparse
import json
import sys
import tempfile
import unicodedata
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_quality import HOTPOTQA, PROJECT, collections, index
from graphrag_assets.query import GraphRAG

METHODS = ("local", "basic", "lazy")
LEVELS = ("low", "medium", "high")

Outcomes = dict[tuple[str, str], list[bool]]
"""By method and level, whether each answer is right."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotpotqa", type=Path, default=HOTPOTQA, help="folder with corpus.json and questions.json")
    parser.add_argument("--folder", type=Path, help="where indexes are kept; default: made for this run only")
    options = parser.parse_args()
    console, ordered = Console(width=110), True
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if options.hotpotqa.is_dir():
            asked = json.loads((options.hotpotqa / "questions.json").read_text())
            questions = [(q["question"], [q["answer"]]) for q in asked if q["answer"] not in ("yes", "no")]
            titled = next(collections(options.hotpotqa))
            ordered &= report(console, "HotpotQA-100", index(folder / "titled", titled.files), questions)
        asked = json.loads((PROJECT / "tests" / "ground_truth.json").read_text())
        questions = [(q["question"], q["answer_contains"]) for q in asked]
        rag = index(folder / "sample", {}, PROJECT / "data" / "input")
        ordered &= report(console, "sample corpus", rag, questions)
    sys.exit(not ordered)


def report(console: Console, name: str, rag: GraphRAG, questions: list[tuple[str, list[str]]]) -> bool:
    """Print the outcomes of a collection; returns whether a higher level is right at least as often as a lower one."""
    outcomes: Outcomes = defaultdict(list)
    for question, expected in questions:
        for method in METHODS:
            answer = rag.search(method, question)
            right = all(_plain(text) in _plain(answer.answer) for text in expected)
            outcomes[method, answer.confidence.level].append(right)
            outcomes["all", answer.confidence.level].append(right)
    table = Table("right / answers", *LEVELS, title=f"{name}, {len(questions)} questions")
    for method in (*METHODS, "all"):
        table.add_row(method, *(_counted(outcomes[method, level]) for level in LEVELS))
    console.print(table)
    shares = [sum(found) / len(found) for level in LEVELS if (found := outcomes["all", level])]
    return shares == sorted(shares)


def _counted(right: list[bool]) -> str:
    return f"{sum(right)} / {len(right)} ({sum(right) / len(right):.0%})" if right else "–"


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold())
    return f" {' '.join(''.join(c if c.isalnum() else ' ' for c in letters if not unicodedata.combining(c)).split())} "


if __name__ == "__main__":
    main()
