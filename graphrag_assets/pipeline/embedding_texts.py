"""Selects the texts to embed. An embedding is kept as long as its texts and its model stay."""

import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.text import cut_text

ENTITY_TOKENS = 32
"""Of an entity's description, the first sentences within this number of tokens are embedded."""


def embedding_texts(
    text_units: pl.DataFrame, entities: pl.DataFrame, reports: pl.DataFrame, model: str
) -> pl.DataFrame:
    """The texts to embed of each row; its vector is the mean of theirs.

    Of a text unit its context and text, of an entity "title:" and the beginning of its description, of a report title
    and summary. The beginning says less of an entity named in several text units, so its title counts as a text of its
    own. The report on a pair of entities only repeats what is known of them: its texts are the beginnings of the two.

    An entity without a relationship has no vector of its own: no path leads to it, and the vectors of its text units
    find what is said of it.

    Args:
        text_units: id, context, text.
        entities: id, title, description, frequency, degree.
        reports: id, title, summary, pair (title and description of both members; null for others).
        model: name of the embedding model.

    Returns:
        kind, id, texts, model, fingerprint (hash of texts and model), sorted by kind and id.
    """
    linked = entities.filter(pl.col("degree") > 0)
    described = [entity_texts(*row) for row in linked.select("title", "description", "frequency").iter_rows()]
    reported = [
        [beginning(**one) for one in pair] if pair else [f"{title}\n\n{summary}"]
        for title, summary, pair in reports.select("title", "summary", "pair").iter_rows()
    ]
    texts = pl.concat(
        [
            text_units.select(kind=pl.lit("text_unit"), id="id", texts=pl.concat_list(in_context())),
            linked.select(kind=pl.lit("entity"), id="id", texts=pl.Series(described, dtype=pl.List(pl.String))),
            reports.select(
                kind=pl.lit("community_report"), id="id", texts=pl.Series(reported, dtype=pl.List(pl.String))
            ),
        ]
    ).sort("kind", "id")
    prints = [fingerprint(model, *of) for of in texts["texts"]]
    return texts.with_columns(pl.Series("fingerprint", prints, dtype=pl.String), model=pl.lit(model))


def fingerprint(model: str, *texts: str) -> str:
    """The hash that identifies the vector of these texts."""
    return stable_id("embedding", model, *texts)


def entity_texts(title: str, description: str, frequency: int) -> list[str]:
    """The texts whose vectors' mean is an entity's; `frequency`: the number of text units that name it."""
    return [title] * (frequency > 1) + [beginning(title, description)]


def beginning(title: str, description: str) -> str:
    """An entity's title and the first sentences of its description, as GraphRAG joins them."""
    return f"{title}:{cut_text(description, ENTITY_TOKENS)}"


def in_context() -> pl.Expr:
    """What is embedded of a text unit: context, line break and text; the text alone where there is no context."""
    context = pl.when(pl.col("context") != "").then("context")
    return pl.concat_str(context, "text", separator="\n", ignore_nulls=True)
