"""Embeddings of text units, entities and reports, computed for new and changed texts only."""

import logging
import time
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.index import Index, exclusive
from graphrag_assets.indexing.stage import StageResult, usage_sums
from graphrag_assets.indexing_models import IndexingModels
from graphrag_assets.pipeline.embedding_texts import embedding_texts, fingerprint
from graphrag_assets.store import schema
from graphrag_assets.store.batches import record_stage
from graphrag_assets.store.change_log import Changed, changes_since_mark, last_revision, set_mark
from graphrag_assets.store.working import replace_rows, replace_table

log = logging.getLogger(__name__)


CODE_VERSION = "3"
"""Incremented when the same inputs give other rows."""


class UpdatedEmbeddings(NamedTuple):
    """The table written, and the number of texts embedded."""

    updated: StageResult
    n_embedded: int


_READER = "embed_texts"
TEXTS = {
    "text_units": "SELECT id, context, text FROM text_units",
    "entities": "SELECT id, title, description, frequency, degree FROM entities",
    "community_reports": """
        SELECT id, title, summary, pair FROM community_reports LEFT JOIN (
            SELECT community, list({'title': e.title, 'description': e.description} ORDER BY e.id) AS pair
            FROM (SELECT community, unnest(entity_ids) AS id FROM communities WHERE size = 2) JOIN entities e USING (id)
            GROUP BY community
        ) USING (community)""",
}
"""What `embedding_texts` reads of the working database."""
_STORED = """
SELECT DISTINCT ON (fingerprint) fingerprint, vector FROM embeddings
WHERE len(vector) = $size AND fingerprint IN (SELECT unnest($fingerprints))
"""
# Of one row: a blocking check verifies that all vectors are of one model and one length.
_KEPT = "SELECT len(vector) AS size, model FROM embeddings LIMIT 1"


class _Texts(NamedTuple):
    """What is to have vectors: all texts, or, with `changed`, those of changed rows; `revision` is the next mark."""

    texts: pl.DataFrame
    changed: Changed | None
    revision: int


@exclusive("embed_texts")
def update_embeddings(index: Index, models: IndexingModels, run_id: str) -> UpdatedEmbeddings:
    """Embed the texts whose fingerprint is new; keep the vectors of the others.

    Only the texts of rows that changed since the last run are looked at, unless the model is another one. The frame of
    the result has their vectors.
    """
    started = time.monotonic()
    model, made_with = models.embedding_model, stable_id("embeddings", CODE_VERSION, models.embedding_model)
    found = _read(index, model, made_with)
    ((size, kept_model),) = index.working.read(_KEPT).rows() or [(None, model)]
    stored = _stored(index, found.texts, size)
    new = _new(found.texts, stored)
    if kept_model != model:
        log.warning(
            "The embedding model changed from %s to %s: embedding all %d texts again.", kept_model, model, new.height
        )
    vectors = _vectors_of(new, models)
    if new.height and size and vectors.list.len()[0] != size:
        log.warning(
            "%s returns vectors of %d numbers, those of the index have %d: embedding all texts again.",
            model,
            vectors.list.len()[0],
            size,
        )
        found, stored = _read(index, model, made_with=None), stored.clear()
        new = _new(found.texts, stored)
        vectors = _vectors_of(new, models)
    known = pl.concat([stored, new.select("fingerprint").with_columns(vectors)])
    known = pl.concat([known, _means(found.texts, known)])
    frame = found.texts.join(known, on="fingerprint", maintain_order="left").select(schema.EMBEDDINGS.column_names)
    with index.working.transaction() as connection:
        if found.changed is None:
            changes = replace_table(connection, schema.EMBEDDINGS, frame)
        else:
            changes = replace_rows(connection, schema.EMBEDDINGS, frame, "id", found.changed.ids(*TEXTS))
        seconds, used = time.monotonic() - started, usage_sums(models.usage)
        record_stage(connection, run_id, "embed_texts", None, seconds, {"embeddings": changes}, "embeddings", used)
        set_mark(connection, _READER, TEXTS, found.revision, made_with)
    updated = StageResult({"embeddings": frame}, {"embeddings": changes}, models.usage, time.monotonic() - started)
    return UpdatedEmbeddings(updated, new.height)


def _read(index: Index, model: str, made_with: str | None) -> _Texts:
    """The texts of rows that changed since a run `made_with` the same; all for None, or without such a run."""
    with index.working.connect() as connection:
        changed = None if made_with is None else changes_since_mark(connection, _READER, TEXTS, made_with)

        def rows(table: str) -> pl.DataFrame:
            if changed is None:
                return connection.sql(TEXTS[table]).pl()
            among = f"{TEXTS[table]} WHERE id IN (SELECT unnest($ids::VARCHAR[]))"
            return connection.sql(among, params={"ids": changed.ids(table).to_list()}).pl()

        texts = embedding_texts(rows("text_units"), rows("entities"), rows("community_reports"), model)
        return _Texts(texts, changed, changed.revision if changed else last_revision(connection))


def _stored(index: Index, texts: pl.DataFrame, size: int | None) -> pl.DataFrame:
    """Stored vectors of `size` numbers of the rows and of their single texts: fingerprint, vector."""
    wanted = pl.concat([texts["fingerprint"], _parts(texts)["part"]]).unique().to_list()
    return index.working.read(_STORED, {"fingerprints": wanted, "size": size})


def _parts(texts: pl.DataFrame) -> pl.DataFrame:
    """A row per text of each row: fingerprint of the row, text, part (fingerprint of the text)."""
    parts = texts.select("fingerprint", "model", text="texts").explode("text")
    prints = [fingerprint(*row) for row in parts.select("model", "text").iter_rows()]
    return parts.with_columns(part=pl.Series(prints, dtype=pl.String))


def _new(texts: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """The distinct texts to embed: fingerprint, text."""
    needed = _parts(texts.join(stored, on="fingerprint", how="anti")).select("text", fingerprint="part")
    return needed.join(stored, on="fingerprint", how="anti").unique("fingerprint", maintain_order=True)


def _means(texts: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Vectors of rows with several texts: the mean of theirs, of length 1."""
    several = texts.filter(pl.col("texts").list.len() > 1).join(known, on="fingerprint", how="anti")
    found = _parts(several.unique("fingerprint")).join(known, left_on="part", right_on="fingerprint")
    sums = [(key, np.sum(rows["vector"].to_list(), axis=0)) for (key,), rows in found.group_by("fingerprint")]
    means = [(key, (vector / max(np.linalg.norm(vector), 1e-12)).tolist()) for key, vector in sums]
    return pl.DataFrame(means, schema=known.schema, orient="row")


def _vectors_of(texts: pl.DataFrame, models: IndexingModels) -> pl.Series:
    return pl.Series("vector", models.embed(texts["text"].to_list())).cast(pl.List(pl.Float32))
