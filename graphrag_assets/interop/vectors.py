"""The vectors of an index: beside its tables as parquet, in GraphRAG 0's entities, or in a LanceDB store."""

import importlib.util
from pathlib import Path
from typing import Any

import polars as pl

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
"""What GraphRAG calls what it embeds, and the kind of row it stands for here."""


def read_vectors(folder: Path, entities: pl.DataFrame | None) -> pl.DataFrame:
    """kind, id, vector of every vector that is found, each once."""
    found = [pl.DataFrame(schema=VECTORS)]
    for name, kind in _KINDS.items():
        for prefix in ("embeddings", "vectors"):
            path = folder / f"{prefix}.{name}.parquet"
            if path.is_file():
                found.append(_of(pl.read_parquet(path), kind))
    if entities is not None and "description_embedding" in entities.columns:
        found.append(_of(entities.select("id", vector="description_embedding"), "entity"))
    found += _of_lance(folder)
    return pl.concat(found).drop_nulls("vector").unique(["kind", "id"], keep="first", maintain_order=True)


def _of(table: pl.DataFrame, kind: str) -> pl.DataFrame:
    column = "vector" if "vector" in table.columns else "embedding"
    if table.schema[column] == pl.Null:
        return pl.DataFrame(schema=VECTORS)
    vector = pl.col(column).cast(VECTORS["vector"], strict=False)
    return table.select(kind=pl.lit(kind), id=pl.col("id").cast(pl.String), vector=vector)


def _of_lance(folder: Path) -> list[pl.DataFrame]:
    """Tables of a LanceDB store in or beside the folder, where pylance is there to read them."""
    if not importlib.util.find_spec("lance"):
        return []
    import lance  # type: ignore[import-not-found]

    stores = [path for parent in (folder, folder.parent) if (path := parent / "lancedb").is_dir()]
    tables = [(kind, store / f"{name}.lance") for store in stores for name, kind in _KINDS.items()]
    return [
        _of(pl.DataFrame(lance.dataset(str(path)).to_table(columns=["id", "vector"])), kind)
        for kind, path in tables
        if path.is_dir()
    ]
