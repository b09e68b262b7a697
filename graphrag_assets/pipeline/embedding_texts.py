"""Selects the texts to embed. An embedding is kept as long as its text and its model stay."""

import polars as pl

from graphrag_assets.ids import stable_id


def embedding_texts(
    text_units: pl.DataFrame, entities: pl.DataFrame, reports: pl.DataFrame, model: str
) -> pl.DataFrame:
    """The texts to embed: context and text of text units, "title:description" of entities, full content of reports.

    An entity without a relationship has no vector of its own: no path leads to it, and the vectors of its text units
    find what is said of it.

    Args:
        text_units: id, context, text.
        entities: id, title, description, degree.
        reports: id, full_content.
        model: name of the embedding model.

    Returns:
        kind, id, text, model, fingerprint (hash of text and model), sorted by kind and id.
    """
    texts = pl.concat(
        [
            text_units.select(kind=pl.lit("text_unit"), id="id", text=in_context()),
            entities.filter(pl.col("degree") > 0).select(
                kind=pl.lit("entity"), id="id", text=pl.concat_str("title", pl.lit(":"), "description")
            ),
            reports.select(kind=pl.lit("community_report"), id="id", text="full_content"),
        ]
    ).sort("kind", "id")
    prints = [stable_id("embedding", model, text) for text in texts["text"]]
    return texts.with_columns(pl.Series("fingerprint", prints, dtype=pl.String), model=pl.lit(model))


def in_context() -> pl.Expr:
    """What is embedded of a text unit: context, line break and text; the text alone where there is no context."""
    context = pl.when(pl.col("context") != "").then("context")
    return pl.concat_str(context, "text", separator="\n", ignore_nulls=True)
