"""Types as a chat model writes them, mapped to those of a closed list."""

import re
from collections.abc import Iterable, Mapping

from graphrag_assets.text.languages import stem

_WORD = re.compile(r"[^\W_]+")
_CAMEL_CASE = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")
_UNCOUNTED = frozenset(["a", "an", "the", "is", "are", "was", "were", "be", "been", "being"])


def by_words(listed: Iterable[str]) -> Mapping[tuple[str, ...], str]:
    """The listed types by their words; of two with the same words the first."""
    return {words(name): name for name in reversed(list(listed))}


def words(name: str) -> tuple[str, ...]:
    """What decides whether two types are the same: the stems of their words in order.

    Spaces, underscores, hyphens and camel case separate words. Articles and forms of "to be" do not count, unless
    there is nothing else. Another preposition is another type: "employed by" is not "employs".

    >>> words("is part-of"), words("PART_OF"), words("worksFor"), words("WORKED FOR")
    (('part', 'of'), ('part', 'of'), ('work', 'for'), ('work', 'for'))
    """
    found = [word.casefold() for word in _WORD.findall(_CAMEL_CASE.sub(" ", name))]
    counted = [word for word in found if word not in _UNCOUNTED] or found
    return tuple(stem(word, "en") for word in counted)
