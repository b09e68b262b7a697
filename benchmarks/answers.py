"""How often an answer of the embedded default holds what was asked for, its length and the CPU time of choosing it.

    python -m benchmarks.answers                     # hotpotqa-100 from ../shared/data, the sample corpus
    python -m benchmarks.answers --method basic --folder build/quality

HotpotQA: the questions whose answer is not yes or no; the answer's text has to contain the expected one. Sample corpus:
tests/ground_truth.json; the text has to contain all that is expected. "Direct" answers are not marked as the closest
passages. The same baseline is beside them: the sentences of the same context by the rarity of the words that they share
with the question, as many as have the same length.
"""

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_quality import HOTPOTQA, PROJECT, collections, index
from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER, Evidence
from graphrag_assets.embedded.answerer import respond
from graphrag_assets.query import GraphRAG
from graphrag_assets.text.languages import STOP_WORDS, stems
from graphrag_assets.text.references import without_references
from graphrag_assets.text.words import sentence_lines

Answer = Callable[[str, Evidence], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="local", choices=("local", "basic"), help="whose context is read")
    parser.add_argument("--hotpotqa", type=Path, default=HOTPOTQA, help="folder with corpus.json and questions.json")
    parser.add_argument("--folder", type=Path, help="where indexes are kept; default: made for this run only")
    options = parser.parse_args()
    table = Table("questions", "answers", "right", "direct and right", "characters", "CPU ms")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if options.hotpotqa.is_dir():
            titled = next(collections(options.hotpotqa))
            asked = json.loads((options.hotpotqa / "questions.json").read_text(encoding="utf-8"))
            pairs = [(q["question"], [q["answer"]]) for q in asked if q["answer"] not in ("yes", "no")]
            _measure(table, "HotpotQA", index(folder / titled.name, titled.files), pairs, options.method)
        truth = json.loads((PROJECT / "tests" / "ground_truth.json").read_text(encoding="utf-8"))
        pairs = [(q["question"], q["answer_contains"]) for q in truth]
        _measure(table, "sample", index(folder / "sample", {}, PROJECT / "data" / "input"), pairs, options.method)
    Console(width=110).print(table)


def _measure(table: Table, name: str, rag: GraphRAG, pairs: Sequence[tuple[str, list[str]]], method: str) -> None:
    contexts = [rag.context(method, question).evidence for question, _ in pairs]
    said: list[str] = []
    for title, answer in (("quotations", lambda q, e: respond(q, e).text), ("baseline", lambda q, e: _baseline(q, e))):
        started = time.process_time()
        answers = [answer(question, evidence) for (question, _), evidence in zip(pairs, contexts, strict=True)]
        milliseconds = 1e3 * (time.process_time() - started) / len(pairs)
        texts = [without_references(text) for text in answers]
        limit = sum(map(len, said)) // len(said) if said else 10_000
        texts = [text[:limit] for text in texts]
        said = said or texts
        right = [all(_plain(f) in _plain(text) for f in facts) for text, (_, facts) in zip(texts, pairs, strict=True)]
        direct = [ok and not text.startswith((CLOSEST, NO_ANSWER)) for ok, text in zip(right, texts, strict=True)]
        counts = (f"{sum(right)} of {len(pairs)}", str(sum(direct)), f"{np.mean([*map(len, texts)]):.0f}")
        table.add_row(name, title, *counts, f"{milliseconds:.0f}")


def _baseline(question: str, evidence: Evidence) -> str:
    """Sentences of the sources by the rarity of the words shared with the question, and of those of their passage."""
    asked = _words(question)
    passages = [p for p in evidence.passages if p.table == "Sources"]
    lines = [(line, _words(line), n) for n, p in enumerate(passages) for line in sentence_lines(p.text)]
    of_passage = [_words(f"{p.title} {p.text}") for p in passages]
    rarity = {word: np.log(1 + len(lines) / (1 + sum(word in words for _, words, _ in lines))) for word in asked}
    scores = [sum(rarity[w] * ((w in words) + 0.5 * (w in of_passage[n])) for w in asked) for _, words, n in lines]
    best = sorted(range(len(lines)), key=lambda place: -scores[place])[:10]
    return " ".join(lines[place][0] for place in best)


def _words(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return set(stems([word for word in words if word not in STOP_WORDS], "en"))


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("’", "'").split()).casefold()


if __name__ == "__main__":
    main()
