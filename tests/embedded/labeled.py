"""Texts with labeled names, and how well the embedded default finds and types them."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from graphrag_assets.embedded.extractor import extract_unit

_LABEL = re.compile(r"\[([^\]|=]+)(?:=([^\]|]+))?\|([A-Z]+)\]")
_KINDS = ("PERSON", "GEO", "ORGANIZATION", "EVENT")


class Scores(NamedTuple):
    """Precision, recall and F1 of names (distinct ones of a text); the share of right types among typed names."""

    precision: float
    recall: float
    f1: float
    right_types: float
    typed: float


def labeled_texts(path: Path) -> list[tuple[str, dict[str, str]]]:
    """The texts of a file with the names of each and their types."""
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and not line.startswith("#")]
    return list(map(unlabeled, texts))


def unlabeled(text: str) -> tuple[str, dict[str, str]]:
    """A text without its labels, and the types by name: `[Bonn|GEO]`, or `[Самаре=Самара|GEO]` of another case."""
    labels = {" ".join((other or name).split()): kind for name, other, kind in _LABEL.findall(text)}
    return _LABEL.sub(r"\1", text), labels


def scores(texts: list[tuple[str, dict[str, str]]]) -> Scores:
    """How well the embedded default finds the names of labeled texts.

    A short form counts as the longer name of the text that ends or begins with it.
    """
    counts: Counter[str] = Counter()
    for text, labels in texts:
        found = {e.title: e.type for e in extract_unit(text).entities if e.type != "CONCEPT"}
        forms = {name: _full(name, labels) for name in labels}
        wanted = {forms[name]: labels[name] for name in labels}
        names = {forms.get(name, name): kind for name, kind in found.items()}
        right = names.keys() & wanted.keys()
        typed = [name for name in right if names[name] in _KINDS]
        counts["found"] += len(names)
        counts["wanted"] += len(wanted)
        counts["right"] += len(right)
        counts["typed"] += len(typed)
        counts["right types"] += sum(_agrees(names[name], wanted[name]) for name in typed)
    precision, recall = counts["right"] / counts["found"], counts["right"] / counts["wanted"]
    return Scores(
        precision,
        recall,
        2 * precision * recall / (precision + recall),
        counts["right types"] / counts["typed"],
        counts["typed"] / counts["right"],
    )


def _full(name: str, names: dict[str, str]) -> str:
    longer = [other for other in names if other != name and name in (other.split()[0], other.split()[-1])]
    return longer[0] if len(longer) == 1 and names[longer[0]] == names[name] else name


def _agrees(found: str, label: str) -> bool:
    return found == label or (label == "OTHER" and found == "EVENT")
