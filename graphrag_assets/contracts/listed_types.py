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


PATTERN = ">"
"""Between the parts of a relationship type that is listed with the types of its ends: PERSON > WORKS_FOR > COMPANY."""


def without_ends(listed: Iterable[str]) -> list[str]:
    """The relationship types themselves, where some are listed with the types of their ends.

    >>> without_ends(["PERSON > WORKS_FOR > COMPANY", "PART_OF"])
    ['WORKS_FOR', 'PART_OF']
    """
    return [name.split(PATTERN)[1].strip() if name.count(PATTERN) == 2 else name for name in listed]


def is_allowed(source: str, relation: str, target: str, listed: Iterable[str]) -> bool:
    """Whether patterns of a relationship type allow these types of its ends; an empty type may be any.

    >>> listed = ["PERSON > WORKS_FOR > COMPANY", "PART_OF"]
    >>> is_allowed("PERSON", "works for", "", listed), is_allowed("CITY", "WORKS_FOR", "COMPANY", listed)
    (True, False)
    """
    patterns = [[words(part) for part in name.split(PATTERN)] for name in listed if name.count(PATTERN) == 2]
    of_type = [(one, other) for one, middle, other in patterns if middle == words(relation)]
    first, last = words(source), words(target)
    fitting = (first in ((), one) and last in ((), other) for one, other in of_type)
    return not of_type or any(fitting)
