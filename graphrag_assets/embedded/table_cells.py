"""Which words of a table's cells are names: not the values that repeat in a column, nor the labels within a cell."""

from collections import Counter

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.names import Mention
from graphrag_assets.embedded.tagging import TaggedSentence

_REPEATED = 2
_Sentences = list[tuple[TaggedSentence, list[Mention], list[Mention]]]


def without_cell_values(sentences: _Sentences) -> _Sentences:
    """The sentences without single words of table rows that are labels, or repeat in a column of the table.

    A word that has a type, or that the prose of the text unit names, is a name wherever it stands.
    """
    in_prose = {name.title for sentence, names, _ in sentences if not _is_row(sentence) for name in names}
    columns = Counter(
        (column, name.title)
        for sentence, names, _ in sentences
        if _is_row(sentence)
        for column, name in {(_column(sentence, name), name) for name in names}
    )

    def is_name(sentence: TaggedSentence, mention: Mention) -> bool:
        one_word = mention.last - mention.first == 1
        if not one_word or mention.type != cues.NAME or mention.title in in_prose:
            return True
        if sentence.words[mention.last : mention.last + 1] == [":"]:
            return False
        return columns[_column(sentence, mention), mention.title] < _REPEATED

    return [
        (sentence, [name for name in names if not _is_row(sentence) or is_name(sentence, name)], concepts)
        for sentence, names, concepts in sentences
    ]


def _is_row(sentence: TaggedSentence) -> bool:
    return "|" in sentence.kinds


def _column(sentence: TaggedSentence, mention: Mention) -> int:
    return sentence.kinds[: mention.first].count("|")
