"""Where text units stand in their files: page or slide, sheet, and time."""

import polars as pl

_KINDS = {"page": ("page", "slide"), "sheet": ("sheet",), "time": ("time",)}


def unit_places(documents: pl.DataFrame, text_units: pl.DataFrame) -> pl.DataFrame:
    """Return `text_units` with page (integer), sheet and time: those in force where each begins, else null.

    Args:
        documents: id, places.
        text_units: document_id, start_char.
    """
    places = (
        documents.select("places", document_id="id")
        .explode("places", keep_nulls=False, empty_as_null=False)
        .unnest("places")
        .sort("start_char", maintain_order=True)
    )
    placed = text_units.with_row_index("row").sort("start_char")
    for column, kinds in _KINDS.items():
        of_kind = places.filter(pl.col("kind").is_in(kinds)).select(
            "document_id", "start_char", pl.col("value").alias(column)
        )
        placed = placed.join_asof(of_kind, on="start_char", by="document_id", check_sortedness=False)
    return placed.sort("row").drop("row").with_columns(pl.col("page").cast(pl.Int64))
