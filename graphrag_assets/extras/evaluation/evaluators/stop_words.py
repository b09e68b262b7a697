"""The share of the words of gold passages that are stop words of the index: 0.3 to 0.6 in prose of its language."""

import re
from collections.abc import Sequence

from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.store.publication_reader import Reader

_WORD = re.compile(r"[^\W\d_]+")


def stop_word_shares(reader: Reader, placed: Sequence[Placed]) -> dict[str, float]:
    """The share by id of the question."""
    words = frozenset().union(*(listed for _, listed in reader.languages.values()))
    units = sorted(frozenset().union(*(each.all_units for each in placed)))
    query = "SELECT human_readable_id, text FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))"
    found: dict[int, list[str]] = {
        number: _WORD.findall(text.lower()) for number, text in reader.frame(query, {"units": units}).iter_rows()
    }
    shares = {}
    for each in placed:
        said = [word for unit in sorted(each.all_units) for word in found.get(unit, ())]
        if said:
            shares[each.question.id] = sum(word in words for word in said) / len(said)
    return shares
