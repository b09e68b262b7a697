"""Reads the vectors of an index: parquet files beside its tables, or a LanceDB store."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_assets.errors import InputError

VECTORS: dict[str, Any] = {"kind": pl.String, "id": pl.String, "vector": pl.List(pl.Float32)}

_KINDS = {
    "text_unit_text": "text_unit",
    "entity_description": "entity",
    "community_full_content": "community_report",
    # LanceDB tables before GraphRAG 3
    "default-text_unit-text": "text_unit",
    "default-entity-description": "entity",
    "default-community-full_content": "community_report",
}
"""GraphRAG's names of embedded columns, and the kinds of rows here."""


_NAMELESS = ("embeddings", "in files without a column of ids and one of vectors, left out")


def read_vectors(folder: Path, left_out: Counter[tuple[str, str]]) -> pl.DataFrame:
    """kind, id, vector of every vector, each once; counts of unusable ones are added to `left_out`.

    Raises:
        InputError: a file cannot be read.
    """
    found = [pl.DataFrame(schema=VECTORS)]
    for name, kind in _KINDS.items():
        for prefix in ("embeddings", "vectors"):
            path = folder / f"{prefix}.{name}.parquet"
            if path.is_file():
                found.append(_of(_parquet(path), kind, left_out))
    found += _of_lance(folder, left_out)
    return pl.concat(found).drop_nulls("vector").unique(["kind", "id"], keep="first", maintain_order=True)


def of_one_length(vectors: pl.DataFrame, length: int | None) -> pl.DataFrame:
    """The finite vectors of this length; default: the most common length."""
    finite = pl.col("vector").list.eval(pl.element().is_finite().fill_null(False)).list.all()
    usable = vectors.filter(finite & (pl.col("vector").list.len() > 0))
    if length is None:
        lengths = usable.group_by(length=pl.col("vector").list.len()).len().sort("len", "length", descending=True)
        length = lengths.item(0, "length") if lengths.height else 0
    return usable.filter(pl.col("vector").list.len() == length)


def _parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read: {reason}. Export or copy it again, or move it away.") from error


def _of(table: pl.DataFrame, kind: str, left_out: Counter[tuple[str, str]]) -> pl.DataFrame:
    column = "vector" if "vector" in table.columns else "embedding"
    found = table.schema.get(column)
    if found == pl.Null:
        return pl.DataFrame(schema=VECTORS)
    if "id" not in table.columns or not isinstance(found, pl.List | pl.Array):
        left_out[_NAMELESS] += table.height
        return pl.DataFrame(schema=VECTORS)
    vector = pl.col(column).cast(VECTORS["vector"], strict=False)
    return table.select(kind=pl.lit(kind), id=pl.col("id").cast(pl.String), vector=vector)


def _of_lance(folder: Path, left_out: Counter[tuple[str, str]]) -> list[pl.DataFrame]:
    """Tables of a LanceDB store in or beside the folder, if pylance is installed."""
    if not importlib.util.find_spec("lance"):
        return []
    stores = [path for parent in (folder, folder.parent) if (path := parent / "lancedb").is_dir()]
    tables = [(kind, store / f"{name}.lance") for store in stores for name, kind in _KINDS.items()]
    return [_of(_lance(path), kind, left_out) for kind, path in tables if path.is_dir()]


def _lance(path: Path) -> pl.DataFrame:
    import lance  # type: ignore[import-not-found]

    try:
        dataset = lance.dataset(str(path))
        columns = [name for name in ("id", "vector") if name in dataset.schema.names]
        return pl.DataFrame(dataset.to_table(columns=columns)) if columns else pl.DataFrame()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}. Copy it again, or move it away.") from error
