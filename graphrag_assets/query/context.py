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


def columns(shown: str) -> dict[str, str]:
    """Columns by heading.

    >>> columns("id=human_readable_id title")
    {'id': 'human_readable_id', 'title': 'title'}
    """
    words = (word.partition("=") for word in shown.split())
    return {heading: column or heading for heading, _, column in words}


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

    @property
    def heading(self) -> str:
        """The first lines of the section."""
        return f"-----{self.name}-----\n{'|'.join(self.shown)}\n"

    @property
    def heading_tokens(self) -> int:
        """Tokens of the heading and of the empty line after the section: each word, bar and underscore is one.

        By this rule and the counts of the publication, most searches do without the tokenizer, which takes 80 MB.
        """
        return 4 + self.name.count(" ") + sum(2 + name.count("_") + name.count(" ") for name in self.shown)

    def without(self, *headings: str) -> "Layout":
        """The layout without the columns of these headings."""
        shown = {name: column for name, column in self.shown.items() if name not in headings}
        return self.showing(shown) if len(shown) < len(self.shown) else self

    def showing(self, shown: Mapping[str, str]) -> "Layout":
        """The layout with other columns, without token counts."""
        return replace(self, shown=shown, counted=None, short_counted=None)

    def with_dates(self, reader: Reader) -> "Layout":
        """The layout with the dates of documents behind the number, if the publication has any; tokens include them."""
        if not reader.has_dates:
            return self
        number, *others = self.shown.items()
        return replace(self, shown=dict([number, ("document_date", "document_date"), *others]))

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
    """The basis of an answer: the sections for a question, and the seconds from the question to them.

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

    def __repr__(self) -> str:
        """The method, the question, and the rows of each section."""
        rows = ", ".join(f"{len(numbers)} {name}" for name, numbers in numbers_in_context(self.frames).items())
        return f"<Context of {self.method} search for {self.question[:60]!r}: {rows}>"

    def to_dict(self) -> dict[str, object]:
        """The context as plain data for JSON; its rows as numbers by section."""
        rows = {name: sorted(numbers) for name, numbers in numbers_in_context(merged_frames(self.sections)).items()}
        plain = {"method": self.method, "question": self.question, "text": self.text, "tokens": self.tokens}
        return plain | {"rows": rows, "seconds": self.seconds}

    def _repr_markdown_(self) -> str:
        """How a notebook shows the context."""
        return literal_markdown(self.text)

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """A frame per kind of section (reports, entities, …), with `in_context`; equal rows once."""
        return merged_frames(self.sections, self.history)

    @property
    def evidence(self) -> Evidence:
        """The context in the form that an answerer takes."""
        return Evidence(self.text, tuple(p for section in self.sections for p in section.passages))


def numbers_in_context(frames: Mapping[str, pl.DataFrame]) -> dict[str, list[int]]:
    """The numbers of the rows that are in the context, by section."""
    return {name: frame.filter("in_context")["human_readable_id"].to_list() for name, frame in frames.items()}


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


def cited_frames(
    sections: Sequence[Section], history: Section | None, cited: Mapping[str, Collection[int]]
) -> dict[str, pl.DataFrame]:
    """The frames of the sections with the flag `cited`, and that of the history.

    Args:
        cited: numbers of the cited rows by name of the section.
    """
    numbers = {table.lower(): sorted(rows) for table, rows in cited.items()}
    flagged = {
        name: frame.with_columns(cited=pl.col("human_readable_id").is_in(numbers.get(name, [])) & pl.col("in_context"))
        for name, frame in merged_frames(sections).items()
    }
    return flagged | ({history.name.lower(): history.frame} if history else {})


def fill(layout: Layout, candidates: pl.DataFrame, budget: int) -> Section:
    """A section with the candidates, in order, that fit `budget` tokens, its heading included.

    A row that does not fit is skipped; shorter rows after it may still fit. If none fits, the first one is cut at a
    sentence.

    Args:
        candidates: rows with `human_readable_id` and the layout's columns, best first. A column
            `occurrence_weight` becomes the weight of the passages.
    """
    (section,) = fill_sections([(1.0, [(layout, candidates, 1.0)])], budget)
    return section


Group = tuple[float, Sequence[tuple[Layout, pl.DataFrame, float]]]
"""A share of the budget and the sections that use it: layout, candidates, and the section's share of what those before
it leave of the group's."""


def fill_sections(groups: Sequence[Group], budget: int, precedence: Sequence[str] = ()) -> tuple[Section, ...]:
    """Sections within one budget, together at most `budget` tokens.

    Every section first gets the rows that fit its share; if none fits, the first one is cut at a sentence. Then the
    tokens that are left go to the remaining rows of the sections that `precedence` names, in its order, so every row
    of these that fits the remaining tokens is included; without `precedence`, of all sections.
    """
    rows = [_Rows(layout, candidates) for _, planned in groups for layout, candidates, _ in planned]
    allotment = _Allotment(rows, budget)
    section = 0
    for share, planned in groups:
        left = share * budget
        for _, _, part in planned:
            left -= allotment.take(section, int(round(part * left, 6)), cut=True)
            section += 1
    for name in precedence or [each.name for each in rows]:
        for section in (place for place, each in enumerate(rows) if each.name == name):
            allotment.take(section, budget)
    return tuple(each.section(taken) for each, taken in zip(rows, allotment.taken, strict=True))


class _Allotment:
    """For each section the selected rows: place to form (0: full, 1: short, the last: cut); and the tokens left."""

    def __init__(self, rows: Sequence["_Rows"], budget: int) -> None:
        self.rows = rows
        self.taken: list[dict[int, int]] = [{} for _ in rows]
        self.left = budget

    def take(self, section: int, limit: int, cut: bool = False) -> int:
        """Select more rows of a section that fit, in order, up to `limit` tokens. Returns the tokens that they use.

        A row that is too long is skipped; shorter rows after it may still fit. A row selected in short is replaced by
        its full form if that fits now. With `cut`, the first row is cut if the section has none otherwise.
        """
        rows, taken = self.rows[section], self.taken[section]
        heading = 0 if taken else rows.heading_tokens
        available = min(limit, self.left) - heading
        room = available
        for place in range(len(rows)):
            if room < rows.least:
                break
            form = taken.get(place)
            if form == 0:
                continue
            before = 0 if form is None else rows.costs[form][place]
            for better in range(len(rows.layouts) if form is None else form):
                tokens = rows.costs[better][place] or rows.cost(place, better, room + before)
                if tokens <= room + before:
                    taken[place] = better
                    room -= tokens - before
                    break
        if cut and not taken and len(rows) and (tokens := rows.cut_first(available)):
            taken[0] = len(rows.layouts)  # the form after those of the layouts
            room -= tokens
        used = available - room + heading if taken else 0
        self.left -= used
        return used


class _Rows:
    """Candidates of a section as lines, full and short, with their tokens, counted on demand."""

    def __init__(self, layout: Layout, candidates: pl.DataFrame) -> None:
        short = layout.shortened()
        self.name = layout.name
        self.layouts = [layout, short] if short and short.text in candidates.columns else [layout]
        self.candidates = candidates
        self.cut = ""
        self.forms = [lines_of(each, candidates) for each in self.layouts]
        self.heading = layout.heading
        self.heading_tokens = layout.heading_tokens
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

    def cut_first(self, limit: int) -> int:
        """Add a form in which the text of the first row is cut to `limit` tokens; its tokens, 0 if nothing fits."""
        layout = self.layouts[-1]
        first = self.candidates[:1]
        (empty,) = lines_of(layout, first.with_columns(pl.lit("").alias(layout.text)))
        text = cut_text((first[layout.text].item() or "").strip(), limit - len(encode(empty)) - 1)
        cut = first.with_columns(pl.lit(text).alias(layout.text))
        (line,) = lines_of(layout, cut)
        tokens = len(encode(line))
        if not text or tokens > limit:
            return 0
        self.cut = text
        self.forms.append([line])
        self.costs.append([tokens])
        self.least = _MIN_TOKENS  # the full form may need only a few tokens more
        return tokens

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
        texts = [*(frame[each.text].to_list() for each in self.layouts), [self.cut]]
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


def packed(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """The places of the sizes in order, in parts within the limit or of one place; without any, an empty part."""
    parts, used = list[list[int]]([[]]), 0
    for place, size in enumerate(sizes):
        if parts[-1] and used + size > limit:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += size
    return parts


def lines_of(layout: Layout, rows: pl.DataFrame) -> list[str]:
    """The line of each row: its cells separated by bars, and a line break."""
    return lines([rows[column].to_list() for column in layout.shown.values()])
