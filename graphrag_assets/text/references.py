"""References to rows, `[Data: Sources (12); Entities (5, 7, +more)]`: how answers and reports cite, and how it is read.

A number may name a sentence of a text unit: `Sources (12.3)` is the third one of text unit 12.
The embedded default writes them by `reference`. Chat models often write a near form, such as `[Sources (5)]`,
`(Data: Sources (4, 5))`, `【Data: …】` or `[Data: source 5, claims 35]`. What names a table and a number in brackets is
read, and `Checked` writes it in the form above. In parentheses, the word Data or a second pair is needed: "(report 5)"
is prose, and so is "three Sources (5) were read".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

_S = r"\s{0,9}"  # bounded, so that a long run of white space is read in linear time
_TABLE = r"(?:text[ _]units?|sources?|entit(?:y|ies)|relationships?|(?:community[ _])?reports?|claims?|covariates?)"
_NUMBER = rf"\#?\d++(?:\.\d++)?(?:{_S}[-–]{_S}\d++(?:\.\d++)?)?"
_MORE = rf"(?:{_S}[,;]?{_S}(?:and\s)?\+?{_S}more\b)?"
_LIST = rf"{_NUMBER}(?:(?:{_S}(?:[,;，；、]|and\b|&){_S}|\s){_NUMBER})*{_MORE}"
_IN_BRACKETS = rf"[(\[（]{_S}{_LIST}{_S}[)\]）]"
_ENCLOSED = rf"{_IN_BRACKETS}(?:{_S}[,;，]?{_S}{_IN_BRACKETS})*"
_LINK = rf"{_S}:?{_S}(?:ids?{_S}:?{_S})?"  # between a table and its numbers


def _groups(numbers: str) -> str:
    """Return the pattern of one or more tables with their numbers, and nothing else."""
    group = rf"(?:(?:and|&|data)\s)*{_TABLE}{_LINK}(?:{numbers})"
    return rf"{group}(?:{_S}[,;，；.]?{_S}{group})*{_MORE}"


_MAX_CHARACTERS = 2_000  # longer text is not a reference
_ANYTHING = rf"(?:\[{_S}{_LIST}{_S}\]|[^\]】］]){{0,{_MAX_CHARACTERS}}}+"
_ROWS = rf"(?(data){_ANYTHING}|{_groups(f'{_ENCLOSED}|{_LIST}')})"
_ROWS_IN_PARENTHESES = rf"(?(data){_groups(f'{_ENCLOSED}|{_LIST}')}|{_groups(_ENCLOSED)})"
BLOCK = re.compile(
    r"(?P<space>(?:(?<!\s)\s+)?)"  # the look-behind keeps the time linear
    rf"(?:(?P<round>[(（])|[\[【［]){_S}(?P<data>data{_S}[:：]{_S})?"
    rf"(?P<rows>(?(round){_ROWS_IN_PARENTHESES}|{_ROWS}))"
    rf"{_S}(?(round)[)）]|[\]】］])"
    r"(?(data)|(?!\())",  # a link, [Report 3](https://…), is no reference
    re.IGNORECASE,
)
"""A reference in any form: `space` before it, the word `data`, its `rows`."""
GROUP = re.compile(
    rf"(?P<table>[A-Za-z][A-Za-z _]*?){_LINK}"
    rf"(?P<numbers>[(\[（][^()\[\]（）]*[)\]）](?:{_S}[,;，]?{_S}{_ENCLOSED})?|{_LIST})",
    re.IGNORECASE,
)
"""A table and its numbers in the rows of a reference. Without brackets, only that of a table that exists is read."""
MARK = re.compile(r"(?:(?<!\s)\s+)?\[unresolved:\s*(?P<rows>[^\]]*)\]")
"""What `Checked` writes in place of an invalid reference."""
CHECKED_PATTERN = r"(?i)\s*\[(?:Data|unresolved):[^\]]*\]"
"""A reference in a checked text, or a mark, as a pattern for DuckDB and polars."""

_OPENING = re.compile(r"[\[【［(（]")
_BEGUN = re.compile(  # what may become a reference when more text arrives
    rf"(?:[\[【［]{_S}data{_S}[:：].*"
    rf"|{_OPENING.pattern}{_S}(?:data{_S}[:：]?{_S})?"
    rf"(?:{_TABLE}|and|data|ids?|more|[\d\s.,;:\#&+–\-()\[\]（），；、])*(?:text[ _]|community[ _])?[a-z]*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_CANONICAL_GROUP = r"[A-Z][A-Za-z ]* \([\d.,\s–-]+(?:\+more)?\)"
_CANONICAL = re.compile(rf"\[Data: {_CANONICAL_GROUP}(?:; {_CANONICAL_GROUP})*\]")
_IGNORED = re.compile(r"\+?\s*(?:\d+\s+)?more\b|\band\b|[\s;,.&，；、]+")
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

_KNOWN = frozenset(_TABLES.values())

Given = Mapping[str, Mapping[int, Set[int]]]
"""The rows that can be cited, by table and number, each with the numbers of its sentences that can be cited."""


def without_references(text: str) -> str:
    """Return the text without its references, those that are marked as invalid, and the white space before them.

    >>> without_references("She broke it [Data: Sources (3)] [unresolved: Ships (7)].")
    'She broke it.'
    """
    text = BLOCK.sub("", text) if _OPENING.search(text) else text  # most texts have none, which is found sooner
    return MARK.sub("", text) if "[unresolved:" in text else text


def places_cited_in(block: str) -> list[tuple[str, int, int | None]]:
    """Return tables, numbers and cited sentences, if any, in the text of a `[Data: …]` block.

    >>> places_cited_in("Sources (3.1, 5.2-4, +more); Ships (1)")
    [('Sources', 3, 1), ('Sources', 5, 2), ('Sources', 5, 3), ('Sources', 5, 4), ('Ships', 1, None)]
    """
    return [
        (table_named(group["table"]), number, sentence)
        for group in GROUP.finditer(block)
        if _is_read(group)
        for number, sentence in _places_in(group["numbers"])
    ]


def unread_in(block: str) -> str:
    """Return what is left of the text of a block without the rows that it cites; "" if all of it is read.

    >>> unread_in("Sources (1) and entity 5, +more"), unread_in("Sources (1); the letter")
    ('', 'the letter')
    """
    rest = GROUP.sub(lambda group: "" if _is_read(group) else group[0], block)
    return rest.strip(" ;,.\n") if _IGNORED.sub("", rest) else ""


def _is_read(group: re.Match[str]) -> bool:
    return group["numbers"][0] in "([（" or table_named(group["table"]) in _KNOWN


def table_named(name: str) -> str:
    """Return the table that a model means, such as Sources by "text units" or "and source"; else the name as it is."""
    name = name.strip().replace("_", " ")
    last_word = name.rpartition(" ")[2].casefold()
    return _NAMES.get(name.casefold()) or _NAMES.get(last_word) or name


def numbers_in(text: str) -> list[int]:
    """Return the numbers of a group such as "3, 5-6, +more"; of a range longer than 50, only its ends."""
    return [number for number, _ in _places_in(text)]


def _places_in(text: str) -> list[tuple[int, int | None]]:
    """Return the numbers of a group, each with its sentence; `3.1-3` and `3.1-3.3` are three sentences of row 3."""
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
    """Return `[Data: Entities (5, 7); …]` for rows by table and number; up to `most` numbers of each table."""
    by_table: dict[str, list[int]] = defaultdict(list)
    for table, number in rows:
        by_table[table].append(number)
    parts = []
    for table, numbers in by_table.items():
        more = ", +more" if len(numbers) > most else ""
        parts.append(f"{table} ({', '.join(map(str, numbers[:most]))}{more})")
    return f"[Data: {'; '.join(parts)}]"


@dataclass
class Checked:
    """Checks a text as it is streamed: a reference to a row that was not given is marked as unresolved.

    `[Data: Sources (1); Ships (7)]` becomes `[Data: Sources (1)] [unresolved: Ships (7)]`; with `remove`, only its
    first part remains. Near forms are written as `[Data: …]`. White space around the text is removed. The start of a
    possible reference is held back until its end arrives, so the text already shown never changes.
    """

    citable: Given
    remove: bool = False
    unresolved: dict[str, None] = field(default_factory=dict)
    _held: str = ""
    _begun: bool = False

    @classmethod
    def text(cls, text: str, citable: Given, remove: bool = False) -> tuple[str, list[str]]:
        """Return the complete checked text, and the references to rows that were not given, as `"Ships (7)"`."""
        checked = cls(citable, remove)
        return checked.feed(text) + checked.end(), list(checked.unresolved)

    def feed(self, piece: str) -> str:
        """Return the text that can be shown after `piece`."""
        return self._read(self._held + piece, is_whole=False)

    def end(self) -> str:
        """Return the rest of the text, after the last piece; an open reference counts as closed."""
        return self._read(self._held, is_whole=True)

    def _read(self, text: str, is_whole: bool) -> str:
        parts, start, stop = [], 0, len(text)
        for opening in _OPENING.finditer(text):
            at = opening.start()
            if at < start:  # inside the reference before
                continue
            block = BLOCK.match(text, at) or (_closed(text[at:]) if is_whole else None)
            if block and not is_whole and not block["data"] and block.end() == len(text):
                stop = at  # the next character may make it a link
                break
            if block:
                before = text[start:at].rstrip()
                parts += [before, self._checked(block, text[start + len(before) : at])]
                start = block.end() if block.string is text else len(text)
            elif not is_whole and len(text) - at <= _MAX_CHARACTERS and _BEGUN.match(text, at):
                stop = at
                break
        # White space may be trailing, or before a reference that is removed.
        settled = text[start:stop].rstrip()
        self._held = "" if is_whole else text[start + len(settled) :]
        return self._out("".join(parts) + settled)

    def _out(self, text: str) -> str:
        text = text if self._begun else text.lstrip()
        self._begun = self._begun or bool(text)
        return text

    def _checked(self, block: re.Match[str], space: str) -> str:
        cited = places_cited_in(block["rows"])
        unknown = [place for place in cited if not _is_in(place, self.citable)]
        unread = unread_in(block["rows"])
        if cited and not unknown and not unread and _CANONICAL.fullmatch(block[0]):
            return space + block[0]
        lost = [f"{table} ({_place(number, sentence)})" for table, number, sentence in unknown]
        lost = [*lost, *([unread] if unread else [])] or ([] if cited else ["nothing"])
        self.unresolved |= dict.fromkeys(lost)
        numbers_by_table: dict[str, dict[str, None]] = {}
        for table, number, sentence in cited:
            if (table, number, sentence) not in unknown:
                numbers_by_table.setdefault(table, {})[_place(number, sentence)] = None
        groups = "; ".join(f"{table} ({', '.join(numbers)})" for table, numbers in numbers_by_table.items())
        blocks = [f"[Data: {groups}]"] if numbers_by_table else []
        blocks += [f"[unresolved: {'; '.join(lost)}]"] if lost and not self.remove else []
        return "".join(space + block for block in blocks) if space else " ".join(blocks)


def _closed(text: str) -> re.Match[str] | None:
    """Return the reference that a text is when it is closed: one that was cut off at the end."""
    closed = (BLOCK.fullmatch(text + ending) for ending in ("]", ")", ")]", "))"))
    return next((block for block in closed if block), None)


def _is_in(place: tuple[str, int, int | None], citable: Given) -> bool:
    table, number, sentence = place
    rows = citable.get(table, {})
    return number in rows and (sentence is None or sentence in rows[number])


def _place(number: int, sentence: int | None) -> str:
    return str(number) if sentence is None else f"{number}.{sentence}"
