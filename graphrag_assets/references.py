"""References to rows, `[Data: Sources (12); Entities (5, 7, +more)]`: how answers and reports cite, and how it is read.

A number may name a sentence of a text unit: `Sources (12.3)` is the third one of text unit 12.
Chat models write them as their prompts ask for, the embedded default by `reference`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

# The look-behind keeps the time linear in a long run of white space.
BLOCK = re.compile(r"(?P<space>(?:(?<!\s)\s+)?)\[Data:\s*(?P<rows>[^\]]*)\]", re.IGNORECASE)
GROUP = re.compile(r"(?P<table>[A-Za-z][A-Za-z ]*?)\s*\((?P<numbers>[^()]*)\)")
OPENING = "[data:"
"""How a reference begins, in lower case."""
BLOCK_PATTERN = r"(?i)\s*\[Data:[^\]]*\]"
"""A reference as a pattern for DuckDB and polars."""

_NUMBERS = re.compile(r"(\d+)(?:\.(\d+))?(?:\s*[-–]\s*(?:(\d+)\.)?(\d+))?")
_LONGEST_RANGE = 50
_TABLES = {
    "source": "Sources",
    "text unit": "Sources",
    "entity": "Entities",
    "relationship": "Relationships",
    "report": "Reports",
    "claim": "Claims",
    "covariate": "Claims",
}
_NAMES = {
    **_TABLES,
    **{f"{name}s": table for name, table in _TABLES.items()},
    "entities": "Entities",
}


def without_references(text: str) -> str:
    """The text without its references and the white space before them.

    >>> without_references("She broke it [Data: Sources (3)].")
    'She broke it.'
    """
    return BLOCK.sub("", text)


def rows_cited_in(block: str) -> list[tuple[str, int]]:
    """Tables and numbers in the text of a `[Data: …]` block, each once; `3-5` are three numbers.

    >>> rows_cited_in("Sources (3.1, 5-6, +more); Ships (1)")
    [('Sources', 3), ('Sources', 5), ('Sources', 6), ('Ships', 1)]
    """
    return list(dict.fromkeys((table, number) for table, number, _ in places_cited_in(block)))


def places_cited_in(block: str) -> list[tuple[str, int, int | None]]:
    """As `rows_cited_in`, with the sentence that is cited of the row, if one is.

    >>> places_cited_in("Sources (3.1, 5.2-4); Ships (1)")
    [('Sources', 3, 1), ('Sources', 5, 2), ('Sources', 5, 3), ('Sources', 5, 4), ('Ships', 1, None)]
    """
    return [
        (table_named(group["table"]), number, sentence)
        for group in GROUP.finditer(block)
        for number, sentence in _places_in(group["numbers"])
    ]


def table_named(name: str) -> str:
    """The table that a model means, such as Sources by "text units" or "and source"; else the name as it is."""
    name = name.strip()
    last_word = name.rpartition(" ")[2].casefold()
    return _NAMES.get(name.casefold()) or _NAMES.get(last_word) or name


def numbers_in(text: str) -> list[int]:
    """The numbers of a group such as "3, 5-6, +more"; of a range longer than 50, only its ends."""
    return [number for number, _ in _places_in(text)]


def _places_in(text: str) -> list[tuple[int, int | None]]:
    """The numbers of a group, each with its sentence; `3.1-3` and `3.1-3.3` are three sentences of row 3."""
    places: list[tuple[int, int | None]] = []
    for first, sentence, last_row, last in _NUMBERS.findall(text):
        if not sentence:
            places += [(number, None) for number in _range(first, last_row or last)]
        elif last_row in ("", first):
            places += [(int(first), number) for number in _range(sentence, last)]
        else:
            places += [(int(first), int(sentence)), (int(last_row), int(last))]
    return places


def _range(first: str, last: str) -> list[int]:
    start, end = int(first), int(last or first)
    return list(range(start, end + 1)) if start <= end < start + _LONGEST_RANGE else [start, end]


def reference(rows: Iterable[tuple[str, int]], most: int) -> str:
    """`[Data: Entities (5, 7); …]` for rows by table and number; up to `most` numbers of each table."""
    by_table: dict[str, list[int]] = defaultdict(list)
    for table, number in rows:
        by_table[table].append(number)
    parts = []
    for table, numbers in by_table.items():
        more = ", +more" if len(numbers) > most else ""
        parts.append(f"{table} ({', '.join(map(str, numbers[:most]))}{more})")
    return f"[Data: {'; '.join(parts)}]"
