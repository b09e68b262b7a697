"""How assets present themselves: specs from the declared schema, and results with numbers and a preview."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import dagster as dg
import polars as pl

from graphrag_assets.store.schema import Table
from graphrag_assets.store.working import Changes

if TYPE_CHECKING:
    from graphrag_assets.models.llm import Usage

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
# The event log is for ever: what documents say stays out of it.
_PRIVATE = {"text", "description", "raw_data", "source_text", "summary", "full_content", "full_content_json"}
_PRIVATE |= {"findings", "rating_explanation", "vector"}


class Updated(NamedTuple):
    """What a stage has written: frames and changes by table name, what its models used, how long it took."""

    frames: dict[str, pl.DataFrame]
    changes: dict[str, Changes]
    usage: "Mapping[str, Usage]"
    seconds: float


Metadata = dict[str, dict[str, Any]]
"""Metadata of materialisations, by asset."""


def usage_sums(usage: "Mapping[str, Usage]") -> dict[str, dict[str, int | float]]:
    """Usage by task as plain numbers."""
    return {task: used.as_dict() for task, used in usage.items()}


def asset_spec(table: Table, group: str, deps: Iterable[str], **more: Any) -> dg.AssetSpec:
    """The spec of the asset that is `table`: description, columns and kinds come from the schema."""
    columns = [dg.TableColumn(c.name, c.type, description=c.comment) for c in table.columns]
    return dg.AssetSpec(
        table.name,
        deps=list(deps),
        group_name=group,
        description=table.comment,
        kinds={"duckdb", "polars"},
        skippable=True,
        metadata={"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": table.name},
        **more,
    )


def table_metadata(
    changes: Changes, seconds: float, preview: pl.DataFrame | None = None, **more: Any
) -> dict[str, Any]:
    """Metadata of a materialised table: rows, changed rows, seconds, a preview without document text."""
    metadata: dict[str, Any] = {
        "dagster/row_count": changes.rows,
        "rows_inserted": changes.inserted,
        "rows_deleted": changes.deleted,
        "seconds": round(seconds, 2),
        **more,
    }
    if preview is not None and preview.height:
        metadata["preview"] = dg.MetadataValue.md(markdown_table(preview))
    return metadata


def markdown_table(frame: pl.DataFrame, rows: int = PREVIEW_ROWS) -> str:
    """The first rows as a Markdown table; long values are cut, columns with document text left out."""
    shown = frame.head(rows).select(c for c in frame.columns if c not in _PRIVATE)
    cells = [[_cell(value) for value in row] for row in shown.iter_rows()]
    lines = [shown.columns, ["---"] * shown.width, *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    text = "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 1] + "…"


def errors_metadata(errors: pl.DataFrame) -> dict[str, Any]:
    """What of a batch was not indexed: its number, and each with its cure."""
    if errors.is_empty():
        return {"skipped": 0}
    table = markdown_table(errors.select("source", "row_number", "stage", "error", "hint"), 50)
    return {"skipped": errors.height, "skipped_rows": dg.MetadataValue.md(table)}


def usage_metadata(usage: "Mapping[str, Usage]") -> dict[str, Any]:
    """Sums of model calls as numbers the UI plots, and the same by task as JSON; nothing without calls."""
    if not usage:
        return {}
    total = sum(usage.values(), start=type(next(iter(usage.values())))())
    numbers = {f"llm/{name}": value for name, value in total.as_dict().items()}
    return {**numbers, "llm/by_task": dg.MetadataValue.json(usage_sums(usage))}


def selected_results(context: dg.AssetExecutionContext, metadata: Metadata) -> Iterator[dg.MaterializeResult]:
    """The results of the assets this step was asked for. It writes all of its tables, and reports these."""
    asked_for = selected(context)
    for name, of_asset in metadata.items():
        if name in asked_for:
            yield dg.MaterializeResult(asset_key=name, metadata=of_asset)


def selected(context: dg.AssetExecutionContext) -> set[str]:
    """Names of the assets this step was asked for."""
    return {key.to_user_string() for key in context.selected_asset_keys}
