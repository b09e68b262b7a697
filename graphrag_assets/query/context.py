"""Contexts: sections of rows that fit a token budget, rendered as GraphRAG renders them."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from graphrag_assets.answering import Evidence, Passage
from graphrag_assets.text import encode, lines

_MAX_CHARACTERS_PER_TOKEN = 12  # avoids counting lines that are far too long; text has 2 to 5
_MIN_TOKENS = 2  # of any line: a number, and the rest
_MARKS = (
    (1_000, 100),
    (8_000, 1_000),
    (20_000, 2_000),
    (10**10, 10_000),
)  # (end, width): marks up to `end` are multiples of `width`


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of a section: its name, and heading to column, the first being the number.

    `title` and `text` are the columns of the title and the text of a row. `short` replaces `text` if the row does not
    fit otherwise. `counted` and `short_counted` are the columns with the token counts of these lines, if known.
    """

    name: str
    shown: Mapping[str, str]
    title: str
    text: str
    short: str | None = None
    counted: str | None = None
    short_counted: str | None = None

    def without(self, *headings: str) -> "Layout":
        """The layout without the columns of these headings."""
        shown = {name: column for name, column in self.shown.items() if name not in headings}
        return self.showing(shown) if len(shown) < len(self.shown) else self

    def showing(self, shown: Mapping[str, str]) -> "Layout":
        """The layout with other columns, without token counts."""
        return replace(self, shown=shown, counted=None, short_counted=None)

    def shortened(self) -> "Layout | None":
        """The layout of rows that do not fit with their full text."""
        if self.short is None:
            return None
        shown = {name: self.short if column == self.text else column for name, column in self.shown.items()}
        return replace(self, shown=shown, text=self.short, short=None, counted=self.short_counted, short_counted=None)


@dataclass(frozen=True)
class Section:
    """One section of a context.

    `frame` has all candidates, best first, with the flag `in_context`, true for the rows that fit.
    `text` has the lines of these rows; `tokens` is its length.
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


@dataclass(frozen=True)
class Context:
    """The basis of an answer: the sections for a question, and the seconds that it took to build them.

    `history`: the turns of the conversation that fit; their tokens count, and they cannot be cited.
    """

    method: str
    question: str
    sections: tuple[Section, ...]
    seconds: float = 0.0
    history: Section | None = None

    @property
    def text(self) -> str:
        """The sections as one text."""
        return "\n".join(section.text for section in self.sections if section.text)

    @property
    def tokens(self) -> int:
        """Length of `text`, and of the history."""
        return len(encode(self.text)) + (self.history.tokens if self.history else 0)

    def _repr_markdown_(self) -> str:
        """How a notebook shows the context."""
        return f"```\n{self.text}\n```"

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """A frame per kind of section (reports, entities, …), with `in_context`; equal rows once."""
        return merged_frames(self.sections, self.history)

    @property
    def evidence(self) -> Evidence:
        """The context in the form that an answerer takes."""
        return Evidence(self.text, tuple(p for section in self.sections for p in section.passages))


def merged_frames(sections: Sequence[Section], history: Section | None = None) -> dict[str, pl.DataFrame]:
    """Frames by name of the section, concatenated; a row is in the context if it is in one of the sections."""
    frames: dict[str, list[pl.DataFrame]] = {}
    for section in sections:
        frames.setdefault(section.name.lower(), []).append(section.frame)
    merged = {
        name: pl.concat(parts, how="diagonal_relaxed")
        .with_columns(pl.col("in_context").any().over("human_readable_id"))
        .unique("human_readable_id", keep="first", maintain_order=True)
        for name, parts in frames.items()
    }
    return merged | ({history.name.lower(): history.frame} if history else {})


def fill(layout: Layout, candidates: pl.DataFrame, budget: int) -> Section:
    """A section with the candidates, in order, that fit `budget` tokens, its heading included.

    A row that does not fit is skipped; shorter rows after it may still fit.

    Args:
        candidates: rows with `human_readable_id` and the layout's columns, best first. A column
            `occurrence_weight` becomes the weight of the passages.
    """
    rows = _Rows(layout, candidates)
    allotment = _Allotment([rows])
    allotment.take(0, budget)
    return rows.section(allotment.taken[0])


def fill_sections(planned: Sequence[tuple[Layout, pl.DataFrame, float]], budget: int) -> tuple[Section, ...]:
    """Sections within one budget: (layout, candidates, share of the budget) each, together at most `budget` tokens.

    A section gets its share and the unused tokens of earlier sections; the rest of the budget goes to skipped rows. A
    larger budget never holds fewer tokens: shares are allotted at fixed marks, the allotment of the next mark
    replaces one only if it holds as many tokens, and between marks rows are only added.
    """
    rows = [_Rows(layout, candidates) for layout, candidates, _ in planned]
    shares = [share for _, _, share in planned]
    by_share = sorted(range(len(shares)), key=lambda section: -shares[section])
    best = _Allotment(rows)
    for mark in _marks(budget):
        best.add(by_share, mark)
        if best.complete:
            break
        allotment = _shared_out(rows, shares, mark)
        allotment.add(by_share, mark)
        if allotment.used >= best.used:
            best = allotment
    best.add(by_share, budget)
    return tuple(r.section(taken) for r, taken in zip(rows, best.taken, strict=True))


def _marks(budget: int) -> Iterator[int]:
    """The budgets up to `budget` at which shares are allotted.

    >>> list(_marks(2_700))[-3:]
    [900, 1000, 2000]
    """
    mark = 0
    for end, width in _MARKS:
        while mark + width <= min(end, budget):
            mark += width
            yield mark


def _shared_out(rows: Sequence["_Rows"], shares: Sequence[float], budget: int) -> "_Allotment":
    """The rows that fit the sections' shares, each share with what the sections before it left."""
    allotment = _Allotment(rows)
    allowed = 0.0
    for section, share in enumerate(shares):
        allowed += share * budget
        allotment.take(section, min(int(round(allowed, 6)), budget))
    return allotment


class _Allotment:
    """For each section the selected rows: place to form (0: full, 1: short); and their tokens."""

    def __init__(self, rows: Sequence["_Rows"]) -> None:
        self.rows = rows
        self.taken: list[dict[int, int]] = [{} for _ in rows]
        self.used = 0

    def take(self, section: int, limit: int) -> None:
        """Select the rows of a section that fit, in order, up to `limit` tokens of all sections.

        A row selected in short is replaced by its full form if that fits now.
        """
        rows, taken = self.rows[section], self.taken[section]
        heading = 0 if taken else rows.heading_tokens
        room = limit - self.used - heading
        forms = range(len(rows.forms))
        for place in range(len(rows)):
            if room < rows.least:
                break
            form = taken.get(place)
            if form == 0:
                continue
            before = 0 if form is None else rows.costs[form][place]
            for better in forms if form is None else range(form):
                tokens = rows.costs[better][place] or rows.cost(place, better, room + before)
                if tokens <= room + before:
                    taken[place] = better
                    room -= tokens - before
                    self.used += heading + tokens - before
                    heading = 0
                    break

    def add(self, order: Sequence[int], budget: int) -> None:
        """Select more rows of every section, in this order, as many as fit the budget."""
        for section in order:
            self.take(section, budget)

    @property
    def complete(self) -> bool:
        """Whether all rows are selected in full."""
        return all(
            len(taken) == len(rows) and not any(taken.values())
            for rows, taken in zip(self.rows, self.taken, strict=True)
        )


class _Rows:
    """Candidates of a section as lines, full and short, with their tokens, counted on demand."""

    def __init__(self, layout: Layout, candidates: pl.DataFrame) -> None:
        short = layout.shortened()
        self.layouts = [layout, short] if short and short.text in candidates.columns else [layout]
        self.candidates = candidates
        self.forms = [lines_of(each, candidates) for each in self.layouts]
        self.heading = f"-----{layout.name}-----\n{'|'.join(layout.shown)}\n"
        self.heading_tokens = _tokens_of(self.heading) + 1  # with the empty line between sections
        self.costs = [_counted(each, candidates) for each in self.layouts]
        # With fewer tokens left, no row fits. A full form may need only a few tokens more than the short one.
        known = len(self.forms) == 1 and all(self.costs[0])
        self.least = min(self.costs[0], default=0) if known else _MIN_TOKENS

    def __len__(self) -> int:
        return self.candidates.height

    def cost(self, place: int, form: int, limit: float) -> int:
        """Tokens of a line; a lower bound if it is far longer than `limit`."""
        line = self.forms[form][place]
        if len(line) > limit * _MAX_CHARACTERS_PER_TOKEN:
            return len(line) // _MAX_CHARACTERS_PER_TOKEN + 1
        self.costs[form][place] = len(encode(line))
        return self.costs[form][place]

    def section(self, taken: Mapping[int, int]) -> Section:
        """The section with the selected rows, in their order."""
        places = sorted(taken)
        text = self.heading + "".join(self.forms[taken[place]][place] for place in places) if places else ""
        tokens = sum(self.costs[taken[place]][place] for place in places) + self.heading_tokens if places else 0
        in_context = pl.Series("in_context", [place in taken for place in range(len(self))], dtype=pl.Boolean)
        known = [column for column in self.candidates if column.name != "in_context"]
        frame = pl.DataFrame([*known, in_context])
        return Section(self.layouts[0].name, frame, self._passages(taken, places), text, tokens)

    def _passages(self, taken: Mapping[int, int], places: Sequence[int]) -> tuple[Passage, ...]:
        """The selected rows as passages, each with the text of its form."""
        layout, frame = self.layouts[0], self.candidates
        numbers, titles = frame["human_readable_id"].to_list(), frame[layout.title].to_list()
        texts = [frame[each.text].to_list() for each in self.layouts]
        known = "occurrence_weight" in frame.columns
        weights = frame["occurrence_weight"].to_list() if known else [1.0] * len(self)
        return tuple(
            Passage(layout.name, numbers[place], titles[place] or "", texts[taken[place]][place] or "", weights[place])
            for place in places
        )


def _counted(layout: Layout, rows: pl.DataFrame) -> list[int]:
    """The tokens of each line; 0 if they are not known yet."""
    if layout.counted not in rows.columns:
        return [0] * rows.height
    return [tokens or 0 for tokens in rows[layout.counted]]


@functools.lru_cache(maxsize=64)
def _tokens_of(heading: str) -> int:
    return len(encode(heading))


def lines_of(layout: Layout, rows: pl.DataFrame) -> list[str]:
    """The line of each row: its cells separated by bars, and a line break."""
    return lines([rows[column].to_list() for column in layout.shown.values()])
