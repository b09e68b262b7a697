"""Contexts: sections of rows that fit a token budget, rendered as GraphRAG renders them."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from graphrag_assets.models.answering import Evidence, Passage
from graphrag_assets.text import encode

_MOST_CHARACTERS_PER_TOKEN = 12  # saves counting what is far too long; text has 2 to 5


@dataclass(frozen=True, slots=True)
class Layout:
    """How a kind of row is shown: the section's name, heading to column, the first being the number.

    `title` and `text` are the columns that say what a row is about and what it says.
    """

    name: str
    shown: Mapping[str, str]
    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """One section of a context.

    `frame` holds all candidates, best first, with the flag `in_context`: whether the row found room.
    `text` is what is shown of them; `tokens` its length.
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
        """The section alone as an answerer takes it."""
        return Evidence(self.text, self.passages)


@dataclass(frozen=True)
class Context:
    """What a question is answered from: the sections found for it, and the seconds this took."""

    method: str
    question: str
    sections: tuple[Section, ...]
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The sections as one text."""
        return "\n".join(section.text for section in self.sections if section.passages)

    @property
    def tokens(self) -> int:
        """Length of `text`."""
        return len(encode(self.text))

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """A frame per kind of section (reports, entities, …), with `in_context`; equal rows once."""
        return merged_frames(self.sections)

    @property
    def evidence(self) -> Evidence:
        """The context as an answerer takes it."""
        return Evidence(self.text, tuple(p for section in self.sections for p in section.passages))


def merged_frames(sections: tuple[Section, ...]) -> dict[str, pl.DataFrame]:
    """Frames of equally named sections put together; a row is in the context when it is in one of them."""
    frames: dict[str, pl.DataFrame] = {}
    for section in sections:
        name = section.name.lower()
        frames[name] = (
            pl.concat([frames[name], section.frame], how="diagonal_relaxed") if name in frames else section.frame
        )
    return {
        name: frame.with_columns(pl.col("in_context").any().over("human_readable_id")).unique(
            "human_readable_id", keep="first", maintain_order=True
        )
        for name, frame in frames.items()
    }


def fill(layout: Layout, candidates: pl.DataFrame, budget: int) -> Section:
    """A section with the candidates, in order, that fit `budget` tokens, its heading included.

    A row too long for what is left is skipped; shorter ones behind it still find their place.

    Args:
        candidates: rows with `human_readable_id` and the layout's columns, best first. A column
            `occurrence_weight` becomes the weight of the passages.
    """
    heading = f"-----{layout.name}-----\n{'|'.join(layout.shown)}\n"
    lines = lines_of(layout, candidates)
    left = budget - len(encode(heading)) - 1  # one for the empty line between sections
    taken: list[int] = []
    for place, line in enumerate(lines):
        if len(line) > left * _MOST_CHARACTERS_PER_TOKEN:
            continue
        tokens = len(encode(line))
        if tokens <= left:
            taken.append(place)
            left -= tokens
    return Section(
        layout.name,
        candidates.with_columns(in_context=pl.int_range(pl.len()).is_in(taken)),
        _passages(layout, candidates[taken]),
        heading + "".join(lines[place] for place in taken) if taken else "",
        budget - left if taken else 0,
    )


def lines_of(layout: Layout, rows: pl.DataFrame) -> list[str]:
    """Each row as a section shows it: its cells with bars between them, and a line break."""
    cells = [pl.col(column).cast(pl.String).fill_null("").str.strip_chars() for column in layout.shown.values()]
    return rows.select(pl.concat_str(*cells, separator="|") + "\n").to_series().to_list()


def _passages(layout: Layout, rows: pl.DataFrame) -> tuple[Passage, ...]:
    weight = pl.col("occurrence_weight") if "occurrence_weight" in rows.columns else pl.lit(1.0)
    columns = rows.select(
        number="human_readable_id",
        title=pl.col(layout.title).fill_null(""),
        text=pl.col(layout.text).fill_null(""),
        weight=weight,
    )
    return tuple(Passage(layout.name, *row) for row in columns.iter_rows())
