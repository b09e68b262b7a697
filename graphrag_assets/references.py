"""References to rows, `[Data: Sources (12); Entities (5, 7, +more)]`: how answers and reports cite, and how it is read.

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

_NUMBERS = re.compile(r"(\d+)\s*[-–]\s*(\d+)|(\d+)")
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
    """Tables and numbers in the text of a `[Data: …]` block; `3-5` are three numbers.

    >>> rows_cited_in("Sources (3, 5-6, +more); Ships (1)")
    [('Sources', 3), ('Sources', 5), ('Sources', 6), ('Ships', 1)]
    """
    return [
        (table_named(group["table"]), number)
        for group in GROUP.finditer(block)
        for number in numbers_in(group["numbers"])
    ]


def table_named(name: str) -> str:
    """The table that a model means, such as Sources by "text units" or "and source"; else the name as it is."""
    name = name.strip()
    last_word = name.rpartition(" ")[2].casefold()
    return _NAMES.get(name.casefold()) or _NAMES.get(last_word) or name


def numbers_in(text: str) -> list[int]:
    """The numbers of a group such as "3, 5-6, +more"; of a range longer than 50, only its ends."""
    numbers: list[int] = []
    for first, last, single in _NUMBERS.findall(text):
        start, end = (int(single), int(single)) if single else (int(first), int(last))
        numbers += range(start, end + 1) if start <= end < start + _LONGEST_RANGE else (start, end)
    return numbers


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
