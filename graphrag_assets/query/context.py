"""Contexts: sections of rows that fit a token budget, rendered as GraphRAG renders them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from graphrag_assets.contracts.answering import Evidence, Passage
from graphrag_assets.runtime.outgoing import literal_markdown
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import cut_text, encode, lines

_MAX_CHARACTERS_PER_TOKEN = 12  # avoids counting lines that are far too long; text has 2 to 5
_MIN_TOKENS = 2  # of any line: a number, and the rest


def columns(names: str) -> dict[str, str]:
    """Columns by heading.

    >>> columns("id=human_readable_id title")
    {'id': 'human_readable_id', 'title': 'title'}
    """
    words = (word.partition("=") for word in names.split())
    return {heading: column or heading for heading, _, column in words}


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of a section: its name, heading to column (the first is the number), the columns of title and text.

    If the candidates have the column `line_tokens`, it has the token counts of the lines; null: not counted yet.
    """

    name: str
    by_heading: Mapping[str, str]
    title: str
    text: str

    @property
    def heading(self) -> str:
        """The first lines of the section."""
        return f"-----{self.name}-----\n{'|'.join(self.by_heading)}\n"

    @property
    def heading_tokens(self) -> int:
        """Tokens of the heading and of the empty line after the section: each word, bar and underscore is one.

        By this rule and the counts of the publication, most searches do without the tokenizer, which takes 80 MB.
        """
        return 4 + self.name.count(" ") + sum(2 + name.count("_") + name.count(" ") for name in self.by_heading)

    def without(self, *headings: str) -> "Layout":
        """Return the layout without the columns of these headings."""
        others = {name: column for name, column in self.by_heading.items() if name not in headings}
        return replace(self, by_heading=others)

    def with_dates(self, reader: Reader) -> "Layout":
        """Return the layout with the dates of documents behind the number, if there are any; tokens include them."""
        if not reader.has_dates:
            return self
        number, *others = self.by_heading.items()
        return replace(self, by_heading=dict([number, ("document_date", "document_date"), *others]))


@dataclass(frozen=True)
class Section:
    """One section of a context.

    `frame` has all candidates, best first, with the flag `in_context`, true for the rows that fit.
    `text` has the lines of these rows; `tokens` is its length. A row that is cut counts as one that fits.
    """

    name: str
    frame: pl.DataFrame
    passages: tuple[Passage, ...]
    text: str
    tokens: int

    @property
    def numbers(self) -> set[int]:
        """The `human_readable_id`s of the rows in the context."""
        return {passage.number for passage in self.passages}

    @property
    def evidence(self) -> Evidence:
        """The section in the form that an answerer takes."""
        return Evidence(self.text, self.passages)


@dataclass(frozen=True, repr=False)
class Context:
    """The basis of an answer: the sections for a question, and the seconds from the question to them."""

    method: str
    question: str
    sections: tuple[Section, ...]
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The sections as one text."""
        return "\n".join(section.text for section in self.sections if section.text)

    @property
    def tokens(self) -> int:
        """Length of `text`."""
        return len(encode(self.text))

    def __repr__(self) -> str:
        """Return the method, the question, and the rows of each section."""
        rows = ", ".join(f"{len(numbers)} {name}" for name, numbers in numbers_in_context(self.frames).items())
        return f"<Context of {self.method} search for {self.question[:60]!r}: {rows}>"

    def to_dict(self) -> dict[str, object]:
        """Return the context as plain data for JSON; its rows as numbers by section."""
        rows = {name: sorted(numbers) for name, numbers in numbers_in_context(self.frames).items()}
        plain = {"method": self.method, "question": self.question, "text": self.text, "tokens": self.tokens}
        return plain | {"rows": rows, "seconds": self.seconds}

    def _repr_markdown_(self) -> str:
        """How a notebook shows the context."""
        return literal_markdown(self.text)

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """A frame per kind of section (reports, entities, …), with `in_context`; equal rows once."""
        return merged_frames(self.sections)

    @property
    def evidence(self) -> Evidence:
        """The context in the form that an answerer takes."""
        return Evidence(self.text, tuple(p for section in self.sections for p in section.passages))


def numbers_in_context(frames: Mapping[str, pl.DataFrame]) -> dict[str, list[int]]:
    """Return the numbers of the rows that are in the context, by section."""
    return {name: frame.filter("in_context")["human_readable_id"].to_list() for name, frame in frames.items()}


def merged_frames(sections: Sequence[Section]) -> dict[str, pl.DataFrame]:
    """Frames by name of the section, concatenated; a row is in the context if it is in one of the sections."""
    frames: dict[str, list[pl.DataFrame]] = {}
    for section in sections:
        frames.setdefault(section.name.lower(), []).append(section.frame)
    return {
        name: pl.concat(parts, how="diagonal_relaxed")
        .with_columns(pl.col("in_context").any().over("human_readable_id"))
        .unique("human_readable_id", keep="first", maintain_order=True)
        for name, parts in frames.items()
    }


def cited_frames(sections: Sequence[Section], cited: Mapping[str, Collection[int]]) -> dict[str, pl.DataFrame]:
    """Return the frames of the sections with the flag `cited`.

    Args:
        cited: numbers of the cited rows by name of the section.
    """
    numbers = {table.lower(): sorted(rows) for table, rows in cited.items()}
    return {
        name: frame.with_columns(cited=pl.col("human_readable_id").is_in(numbers.get(name, [])) & pl.col("in_context"))
        for name, frame in merged_frames(sections).items()
    }


def fill(layout: Layout, candidates: pl.DataFrame, budget: int) -> Section:
    """Return a section with the candidates, in order, that fit `budget` tokens, its heading included.

    A row that does not fit is skipped; shorter rows after it may still fit. If none fits, the first one is cut at a
    sentence.

    Args:
        candidates: rows with `human_readable_id` and the layout's columns, best first. A column
            `occurrence_weight` becomes the weight of the passages.
    """
    (section,) = fill_sections([(1.0, [(layout, candidates, 1.0)])], budget, [layout.name])
    return section


Group = tuple[float, Sequence[tuple[Layout, pl.DataFrame, float]]]
"""A share of the budget and the sections that use it: layout, candidates, and the section's share of what those before
it leave of the group's."""


def fill_sections(groups: Sequence[Group], budget: int, precedence: Sequence[str]) -> tuple[Section, ...]:
    """Return sections within one budget, together at most `budget` tokens.

    Every section first gets the rows that fit its share. Then the tokens that are left go to the remaining rows of the
    sections that `precedence` names, in its order. If no row of a section fits, the first one is cut at a sentence.
    """
    left, sections = budget, list[_Rows]()
    for share, planned in groups:
        room = share * budget
        for layout, candidates, part in planned:
            rows = _Rows(layout, candidates)
            used = rows.take(min(int(round(part * room, 6)), left), cut=layout.name not in precedence)
            room -= used
            left -= used
            sections.append(rows)
    for name in precedence:
        for rows in (each for each in sections if each.layout.name == name):
            left -= rows.take(left, cut=True)
    return tuple(rows.section() for rows in sections)


class _Rows:
    """Candidates of a section as lines with their tokens, counted on demand, and the places of those selected."""

    def __init__(self, layout: Layout, candidates: pl.DataFrame) -> None:
        self.layout, self.candidates = layout, candidates
        self.lines = lines_of(layout, candidates)
        counts = candidates["line_tokens"] if "line_tokens" in candidates.columns else [0] * candidates.height
        self.tokens = [count or 0 for count in counts]  # 0: not counted yet
        self.least = min(self.tokens, default=0) or _MIN_TOKENS  # with fewer tokens left, no row fits
        self.selected = set[int]()

    def take(self, limit: int, cut: bool) -> int:
        """Select more rows that fit, in order, up to `limit` tokens; with `cut`, a part of the first if none does.

        Returns:
            the tokens that they use.
        """
        heading = 0 if self.selected else self.layout.heading_tokens
        left = limit - heading
        for place, line in enumerate(self.lines):
            if left < self.least:
                break
            if place in self.selected or len(line) > left * _MAX_CHARACTERS_PER_TOKEN:
                continue
            self.tokens[place] = self.tokens[place] or len(encode(line))
            if self.tokens[place] <= left:
                self.selected.add(place)
                left -= self.tokens[place]
        if cut and not self.selected and self.lines and self._cut_first(left):
            self.selected.add(0)
            left -= self.tokens[0]
        return limit - left if self.selected else 0

    def _cut_first(self, limit: int) -> bool:
        """Cut the text of the first row so that its line has `limit` tokens; returns whether any of it fits."""
        column, first = self.layout.text, self.candidates[:1]
        (empty,) = lines_of(self.layout, first.with_columns(pl.lit("").alias(column)))
        text = cut_text((first[column].item() or "").strip(), limit - len(encode(empty)) - 1)
        cut = first.with_columns(pl.lit(text).alias(column))
        (line,) = lines_of(self.layout, cut)
        tokens = len(encode(line))
        if not text or tokens > limit:
            return False
        self.lines[0], self.tokens[0] = line, tokens
        self.candidates = pl.concat([cut, self.candidates[1:]])
        return True

    def section(self) -> Section:
        """Return the section with the selected rows, in their order."""
        places = sorted(self.selected)
        in_context = pl.Series("in_context", [place in self.selected for place in range(len(self.lines))], pl.Boolean)
        frame = self.candidates.drop("in_context", strict=False).with_columns(in_context)
        if not places:
            return Section(self.layout.name, frame, (), "", 0)
        names = ["human_readable_id", self.layout.title, self.layout.text, "occurrence_weight"]
        columns = [frame[name].to_list() for name in names if name in frame.columns]
        passages = tuple(
            Passage(self.layout.name, number, title or "", text or "", *weight)
            for number, title, text, *weight in ([column[place] for column in columns] for place in places)
        )
        tokens = self.layout.heading_tokens + sum(self.tokens[place] for place in places)
        return Section(
            self.layout.name, frame, passages, self.layout.heading + "".join(self.lines[p] for p in places), tokens
        )


def packed(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """Return places of the sizes in order, in parts within the limit or of one place; without any, an empty part."""
    parts, used = list[list[int]]([[]]), 0
    for place, size in enumerate(sizes):
        if parts[-1] and used + size > limit:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += size
    return parts


def lines_of(layout: Layout, rows: pl.DataFrame) -> list[str]:
    """Return the line of each row: its cells separated by bars, and a line break."""
    return lines([rows[column].to_list() for column in layout.by_heading.values()])
