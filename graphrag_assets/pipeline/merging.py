"""Mentions become entities and relationships: a pure function of all mentions, independent of their order.

Entities are grouped by normalized title; relationships are undirected pairs. Weights are sums of strengths. A
co-occurrence counted by the embedded default is damped by the cosine of the two ends' sentences (Salton and McGill,
1983, "Introduction to Modern Information Retrieval"), mapped from [0, 1] to [1/2, 1], so that two frequently named
things do not appear related merely because they meet often. It depends on the counts of both ends and of the pair
alone: a new document changes the weights of what it names, not those of the whole graph.
"""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from graphrag_assets.contracts.records import UNKNOWN
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.embedded import summarize as most_central
from graphrag_assets.ids import with_id
from graphrag_assets.pipeline.alias_decisions import SPLIT
from graphrag_assets.pipeline.resolution import apply_aliases
from graphrag_assets.store import schema

MIN_CONCEPT_MENTIONS = 2
"""A common-noun concept becomes an entity when this many text units name it."""
GENERIC_TYPES = ["", UNKNOWN, "CONCEPT", "NAME"]
_MIN_SHARE = 0.2
_OLDEST = -1_000_000  # days: before any date
PAIR_SEPARATOR = "\x1f"
"""Between the names of a pair, in the key under which its descriptions are summarized."""
_EMBEDDED = pl.col("extractor").str.starts_with(EXTRACTOR)


Summarize = Callable[[pl.DataFrame], pl.DataFrame]


class Graph(NamedTuple):
    """Merged entities and relationships, without human_readable_ids."""

    entities: pl.DataFrame
    relationships: pl.DataFrame


def merge(
    entity_mentions: pl.DataFrame,
    relationship_mentions: pl.DataFrame,
    aliases: pl.DataFrame,
    min_concept_mentions: int = MIN_CONCEPT_MENTIONS,
    summarize: Summarize = most_central,
    known: pl.DataFrame | None = None,
    dates: pl.DataFrame | None = None,
) -> Graph:
    """The graph of all mentions.

    Args:
        entity_mentions, relationship_mentions: as stored, over all batches.
        aliases: accepted rows of entity_aliases.
        min_concept_mentions: a common-noun concept found by the embedded default in fewer text units is left out
            together with its relationships.
        summarize: from descriptions (key, title, description, n, dated) to one description per key (key, description).
        known: entities without mentions here, which relationships may have as an end: title_key, title, n_sentences.
        dates: document_id, document_date, of the documents that have a date.

    Returns:
        entities: id, title, type, description, text_unit_ids, frequency, degree, n_sentences, title_key, types. Of
        those `known` beforehand, type, description, text units and degree are not what they are in the whole graph.
        relationships: id, source, target, description, weight, combined_degree, text_unit_ids, source_id,
        target_id, type, relations, types.
    """
    entity_mentions, relationship_mentions = _dated(entity_mentions, dates), _dated(relationship_mentions, dates)
    mentions = apply_aliases(entity_mentions.with_columns(own_key=pl.col("title_key")), aliases, ["title_key"])
    pairs = apply_aliases(relationship_mentions, aliases, ["source_key", "target_key"])
    mentions, pairs = _without_denied(mentions, pairs)
    rare = _rare_concepts(mentions, min_concept_mentions)
    mentions = mentions.join(rare, on="title_key", how="anti")
    pairs = pairs.filter(pl.col("source_key") != pl.col("target_key"))
    for end in ("source_key", "target_key"):
        pairs = pairs.filter(pl.col(end) != "").join(rare, left_on=end, right_on="title_key", how="anti")
    mentions = mentions.filter(pl.col("title_key") != "")
    if known is not None:
        mentions = pl.concat([mentions, _as_mentions(known)], how="diagonal")
    mentions = pl.concat([mentions, _undeclared(mentions, pairs)], how="diagonal")
    undirected = _undirected(pairs)
    merged = _merged_pairs(undirected, mentions)
    entities = _entities(mentions, aliases.filter(rule=SPLIT)["title_key"], summarize)
    relationships = _relationships(undirected, merged, entities, summarize)
    ends = pl.concat([relationships["source_id"], relationships["target_id"]]).rename("id")
    degree = ends.value_counts(name="degree").with_columns(pl.col("degree").cast(pl.Int64))
    entities = entities.join(degree, on="id", how="left").with_columns(pl.col("degree").fill_null(0))
    relationships = (
        relationships.join(degree.select(source_id="id", combined_degree="degree"), on="source_id")
        .join(degree.select(target_id="id", other_degree="degree"), on="target_id")
        .with_columns(pl.col("combined_degree") + pl.col("other_degree"))
        .drop("other_degree")
    )
    return Graph(entities.sort("id"), relationships.sort("id"))


def _without_denied(mentions: pl.DataFrame, pairs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The mentions without the names, and the pairs of names, that people say are none, whoever states them."""
    is_denied = pl.col("extractor") == schema.DENIED
    denied, denied_pairs = mentions.filter(is_denied).select("title_key"), pairs.filter(is_denied)
    mentions = mentions.filter(~is_denied).join(denied, on="title_key", how="anti")
    pairs = pairs.filter(~is_denied)
    for end in ("source_key", "target_key"):
        pairs = pairs.join(denied, left_on=end, right_on="title_key", how="anti")
    for ends in (["source_key", "target_key"], ["target_key", "source_key"]):
        of_any_type, of_type = denied_pairs.filter(type=""), denied_pairs.filter(pl.col("type") != "")
        pairs = pairs.join(of_any_type, left_on=["source_key", "target_key"], right_on=ends, how="anti")
        pairs = pairs.join(of_type, left_on=["source_key", "target_key", "type"], right_on=[*ends, "type"], how="anti")
    return mentions, pairs


def _dated(mentions: pl.DataFrame, dates: pl.DataFrame | None) -> pl.DataFrame:
    """The mentions with the date of their document as `dated`."""
    if dates is None or dates.is_empty():
        return mentions.with_columns(dated=pl.lit(None, pl.Date))
    of_documents = dates.select("document_id", dated="document_date")
    return mentions.join(of_documents, on="document_id", how="left", maintain_order="left")


def _rare_concepts(mentions: pl.DataFrame, minimum: int) -> pl.DataFrame:
    """Keys that only the embedded default found, only as concepts, in fewer than `minimum` text units."""
    only_concept = ((pl.col("type") == "CONCEPT") & _EMBEDDED).all()
    return (
        mentions.group_by("title_key")
        .agg(concept=only_concept, units=pl.col("text_unit_id").n_unique())
        .filter(pl.col("concept") & (pl.col("units") < minimum))
        .select("title_key")
    )


def _as_mentions(known: pl.DataFrame) -> pl.DataFrame:
    """One mention for each `known` entity, with all its sentences."""
    return known.select(
        pl.col("title_key", "title", "n_sentences"),
        own_key="title_key",
        type=pl.lit(""),
        description=pl.lit(""),
        text_unit_id=pl.lit(""),
        extractor=pl.when(pl.col("n_sentences").is_not_null()).then(pl.lit(EXTRACTOR)).otherwise(pl.lit("")),
    )


def _undeclared(mentions: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Mentions of type UNKNOWN for relationship ends that no extraction declared as entities."""
    ends = pl.concat(
        pairs.select(
            "description", "text_unit_id", "document_id", "extractor", "dated", title_key=f"{end}_key", title=end
        )
        for end in ("source", "target")
    )
    return ends.join(mentions.select("title_key"), on="title_key", how="anti").with_columns(
        type=pl.lit(UNKNOWN), n_sentences=pl.lit(1, pl.Int64), own_key=pl.col("title_key")
    )


def _majority_type(frame: pl.DataFrame, key: str, least_share: float = 0.0) -> pl.DataFrame:
    """Per key: type and types (all, with counts).

    The type is one that a person states, else that of most mentions, specific before generic, then the newest.

    A specific type is preferred to a generic one when at least `least_share` of the key's mentions have it.
    """
    stated = (pl.col("extractor") == schema.STATED).any()
    counted = frame.group_by(key, "type").agg(
        pl.len().cast(pl.Int64).alias("n"), newest=pl.col("dated").max(), guessed=~stated | (pl.col("type") == "").all()
    )
    doubtful = pl.col("n") < least_share * pl.col("n").sum().over(key)
    age = -pl.col("newest").cast(pl.Int32).fill_null(_OLDEST)
    ordered = counted.sort(
        key, "guessed", pl.col("type").is_in(GENERIC_TYPES) | doubtful, pl.col("n").neg(), age, "type"
    )
    return ordered.group_by(key, maintain_order=True).agg(
        pl.col("type").first(), pl.struct("type", "n").filter(pl.col("type") != "").alias("types")
    )


def _entities(mentions: pl.DataFrame, things: pl.Series, summarize: Summarize) -> pl.DataFrame:
    """The entities; `things`: the keys of things of split names."""
    # A form of the canonical name itself where there is one; a name that only aliases lead to has none.
    titles = (
        mentions.group_by("title_key", "title")
        .agg(pl.col("n_sentences").sum(), canonical=(pl.col("own_key") == pl.col("title_key")).any())
        .sort("title_key", ~pl.col("canonical"), pl.col("n_sentences").neg(), "title")
        .group_by("title_key", maintain_order=True)
        .agg(pl.col("title", "canonical").first())
        .with_columns(_title_of_thing(things))
        .drop("canonical")
    )
    units = mentions.group_by("title_key").agg(text_unit_ids=pl.col("text_unit_id").unique().sort())
    described = mentions.select("title_key", "description", "dated", n=pl.lit(1, pl.Int64)).join(titles, on="title_key")
    entities = (
        titles.join(units, on="title_key")
        .join(_sentences(mentions), on="title_key", how="left")
        .join(_majority_type(mentions, "title_key", _MIN_SHARE), on="title_key")
        .join(summarize(described.rename({"title_key": "key"})), left_on="title_key", right_on="key", how="left")
        .with_columns(
            pl.col("description").fill_null(""),
            frequency=pl.col("text_unit_ids").list.len().cast(pl.Int64),
            kind=pl.lit("entity"),
        )
    )
    return with_id(entities, "kind", "title_key").drop("kind")


def _title_of_thing(things: pl.Series) -> pl.Expr:
    """The title; of a key that no mention has with its qualifier, or, of a thing of a split name, by the key."""
    is_named = pl.col("canonical") | pl.col("title").str.ends_with(")")
    qualifier = pl.col("title_key").str.extract(r"( \(.+\))$")
    by_key = pl.when(pl.col("title_key").is_in(things.implode())).then(pl.col("title_key").str.to_titlecase())
    title = pl.coalesce(pl.col("title") + qualifier, by_key, "title")
    return pl.when(is_named).then("title").otherwise(title).alias("title")


def _undirected(pairs: pl.DataFrame) -> pl.DataFrame:
    """`pairs` with both keys in order (low, high, together pair), and whether source comes first (forward)."""
    return pairs.with_columns(
        forward=pl.col("source_key") < pl.col("target_key"),
        low=pl.min_horizontal("source_key", "target_key"),
        high=pl.max_horizontal("source_key", "target_key"),
        counted=_EMBEDDED,
    ).with_columns(pair=pl.concat_str("low", pl.lit(PAIR_SEPARATOR), "high"))


def _merged_pairs(undirected: pl.DataFrame, mentions: pl.DataFrame) -> pl.DataFrame:
    """A row per pair: pair, low, high, forward, text_unit_ids, weight."""
    merged = undirected.group_by("pair").agg(
        pl.col("low", "high").first(),
        forward=pl.col("forward").mean() >= 0.5,
        stated=pl.col("strength").filter(~pl.col("counted")).sum(),
        together=pl.col("strength").filter("counted").sum(),
        text_unit_ids=pl.col("text_unit_id").unique().sort(),
    )
    return _with_weight(merged, _sentences(mentions))


def _sentences(mentions: pl.DataFrame) -> pl.DataFrame:
    """title_key, n_sentences: in how many sentences the embedded default found each name, if it extracted any."""
    return mentions.filter(_EMBEDDED).group_by("title_key").agg(pl.col("n_sentences").sum())


def _relationships(
    undirected: pl.DataFrame, merged: pl.DataFrame, entities: pl.DataFrame, summarize: Summarize
) -> pl.DataFrame:
    title = pl.format("{} – {}", "low", "high")
    descriptions = undirected.select("description", "dated", key="pair", title=title, n=pl.lit(1, pl.Int64))
    relationships = (
        _with_relations(merged.join(_majority_type(undirected, "pair"), on="pair"), undirected)
        .join(summarize(descriptions), left_on="pair", right_on="key", how="left")
        .with_columns(pl.col("description").fill_null(""), kind=pl.lit("relationship"))
        .with_columns(
            source_key=pl.when("forward").then("low").otherwise("high"),
            target_key=pl.when("forward").then("high").otherwise("low"),
        )
        .join(entities.select(source_key="title_key", source="title", source_id="id"), on="source_key")
        .join(entities.select(target_key="title_key", target="title", target_id="id"), on="target_key")
    )
    left_out = ("human_readable_id", "combined_degree")
    columns = [name for name in schema.RELATIONSHIPS.column_names if name not in left_out]
    return with_id(relationships, "kind", "low", "high").select(columns)


def _with_relations(pairs: pl.DataFrame, undirected: pl.DataFrame) -> pl.DataFrame:
    """`pairs` in the direction of their type, with all predicates where there are several, the newest first."""
    stated = undirected.filter(pl.col("type") != "").join(pairs.select("pair", shown="type"), on="pair")
    direction = stated.filter(pl.col("type") == pl.col("shown")).group_by("pair").agg(typed=pl.col("forward").mean())
    pairs = pairs.join(direction, on="pair", how="left").with_columns(
        forward=pl.when(pl.col("typed").is_null()).then("forward").otherwise(pl.col("typed") >= 0.5)
    )
    predicates = stated.group_by("pair", "type", "forward").agg(newest=pl.col("dated").max())
    several = predicates.filter(pl.len().over("pair") > 1).join(pairs.select("pair", along="forward"), on="pair")
    date = pl.when(pl.col("newest").is_not_null()).then(pl.format(" ({})", "newest")).otherwise(pl.lit(""))
    back = pl.when(pl.col("forward") == pl.col("along")).then(pl.lit("")).otherwise(pl.lit("← "))
    relations = (
        several.with_columns(text=back + pl.col("type") + date)
        .sort("pair", -pl.col("newest").cast(pl.Int32).fill_null(_OLDEST), "type", "text")
        .group_by("pair", maintain_order=True)
        .agg(relations=pl.col("text").str.join("; "))
    )
    return pairs.drop("typed").join(relations, on="pair", how="left").with_columns(pl.col("relations").fill_null(""))


def _with_weight(merged: pl.DataFrame, sentences: pl.DataFrame) -> pl.DataFrame:
    """`merged` with weight = stated + together * (1 + cosine) / 2, over the `sentences` that name each end."""
    named = sentences.with_columns(pl.col("n_sentences").cast(pl.Float64))
    cosine = (pl.col("together") / (pl.col("low_n") * pl.col("high_n")).sqrt()).clip(0, 1)
    return (
        merged.join(named.select(low="title_key", low_n="n_sentences"), on="low", how="left")
        .join(named.select(high="title_key", high_n="n_sentences"), on="high", how="left")
        .with_columns(pl.col("low_n", "high_n").fill_null(1.0))
        # Leiden needs a positive weight. With four digits, another sentence about a hub leaves nearly all its
        # relationships as they are.
        .with_columns(weight=(pl.col("stated") + pl.col("together") * (1 + cosine) / 2).clip(0.01).round(4))
        .drop("low_n", "high_n", "stated", "together")
    )
