"""Selects the texts to embed. An embedding is kept as long as its texts and its model stay."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.text.words import cut_text

ENTITY_TOKENS = 28
"""Of an entity's description, the first sentences within this number of tokens are embedded."""


class EmbeddingTexts(NamedTuple):
    """What vectors are made of.

    rows: kind, id, model, parts, fingerprint, sorted by kind and id. The vector of a row is the mean of those of its
    parts; they are fingerprints of texts and of entities. The fingerprint is a hash of parts and model.
    texts: the texts to embed, by fingerprint.
    """

    rows: pl.DataFrame
    texts: dict[str, str]


def embedding_texts(
    text_units: pl.DataFrame, entities: pl.DataFrame, reports: pl.DataFrame, model: str
) -> EmbeddingTexts:
    """The texts to embed of each row.

    Of a text unit its context and text, of an entity its title, and "title:" with the beginning of its description.
    Half of a report is its title and summary, the other half the entities that it is about. The report on a pair only
    repeats what is known of the two, so its vector is theirs.

    An entity without a relationship has no vector of its own: no path leads to it, and the vectors of its text units
    find what is said of it.

    Args:
        text_units: id, context, text.
        entities: id, title, description, degree.
        reports: id, title, summary, members (id of the best connected entities, and the fingerprint of their vectors,
            which counts where the entity is not among `entities`).
        model: name of the embedding model.
    """
    texts: dict[str, str] = {}

    def part(text: str) -> str:
        texts[key := fingerprint(model, text)] = text
        return key

    units = [("text_unit", key, [part(text)]) for key, text in text_units.select("id", in_context()).iter_rows()]
    linked = entities.filter(pl.col("degree") > 0).select("id", "title", "description")
    described = [("entity", key, [part(text) for text in entity_texts(*named)]) for key, *named in linked.iter_rows()]
    of_entity = {key: fingerprint(model, *parts) for _, key, parts in described}
    reported = []
    for key, title, summary, members in reports.select("id", "title", "summary", "members").iter_rows():
        prints = (of_entity.get(member["id"], member["fingerprint"]) for member in members or ())
        found = [print_ for print_ in prints if print_]
        own = [] if len(found) == 2 else [part(f"{title}\n\n{summary}")] * max(len(found), 1)
        reported.append(("community_report", key, own + found))
    rows = pl.DataFrame(
        [*units, *described, *reported],
        {"kind": pl.String, "id": pl.String, "parts": pl.List(pl.String)},
        orient="row",
    ).sort("kind", "id")
    wholes = [parts[0] if len(parts) == 1 else fingerprint(model, *parts) for parts in rows["parts"]]
    return EmbeddingTexts(rows.with_columns(pl.Series("fingerprint", wholes, pl.String), model=pl.lit(model)), texts)


def fingerprint(model: str, *parts: str) -> str:
    """The hash that identifies the vector of a text, or of several parts."""
    return stable_id("embedding", model, *parts)


def entity_texts(title: str, description: str) -> Sequence[str]:
    """The texts whose vectors' mean is an entity's: its title, and as in GraphRAG "title:description", shortened."""
    return title, f"{title}:{cut_text(description, ENTITY_TOKENS)}"


def in_context() -> pl.Expr:
    """What is embedded of a text unit: context, line break and text; the text alone where there is no context."""
    context = pl.when(pl.col("context") != "").then("context")
    return pl.concat_str(context, "text", separator="\n", ignore_nulls=True)
