"""Metadata of materializations."""

from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.assets.stage import Markdown, Stage, StageResult
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.runtime.outgoing import as_markdown, shown
from graphrag_assets.store.batches import UsageByTask
from graphrag_assets.store.index_database import Changes
from graphrag_assets.store.schema import BATCH_TABLES

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
REMEDY_CHARACTERS = 400  # errors and remedies are read in full
# The event log is permanent: text of documents stays out of it.
_PRIVATE = {"text", "context", "description", "raw_data", "source_text", "summary", "full_content", "full_content_json"}
_PRIVATE |= {"findings", "rating_explanation", "vector"}
_PARTITIONED = {table.name for table in BATCH_TABLES}
_USAGE = Usage().as_dict()
_PREVIEWED = (
    *("kind", "title", "type", "degree", "frequency", "rank", "size", "level", "source", "target", "weight"),
    *("subject_id", "object_id", "status", "language", "n_tokens", "model"),
)
"""Columns of a preview: not hashes, lists, or what documents say."""
Metadata = dict[str, dict[str, Any]]
"""Metadata of materializations, by asset."""


def table_metadata(name: str, changes: Changes, seconds: float, preview: pl.DataFrame, **more: Any) -> dict[str, Any]:
    """Metadata of the materialized table `name`: rows, changed rows, seconds, a preview without document text.

    The same numbers are there each time, so that the UI plots them over time.
    """
    rows = "dagster/partition_row_count" if name in _PARTITIONED else "dagster/row_count"
    metadata: dict[str, Any] = {
        rows: changes.rows,
        "rows_inserted": changes.inserted,
        "rows_deleted": changes.deleted,
        "seconds": round(seconds, 2),
        **more,
    }
    if preview.height:
        columns = preview.select(column for column in _PREVIEWED if column in preview.columns)
        metadata["preview"] = dg.MetadataValue.md(markdown_table(columns))
    return metadata


def stage_metadata(stage: Stage, result: StageResult, seconds: float) -> Metadata:
    """Metadata of the assets of a stage, which took `seconds`."""
    metadata = {name: dict(result.more.get(name, {})) for name in stage.assets}
    metadata[next(iter(metadata))] |= usage_metadata(result.usage)
    for name, more in metadata.items():
        for key, value in more.items():
            if isinstance(value, Markdown):
                more[key] = dg.MetadataValue.md(value)
        if name in result.previews:
            metadata[name] = table_metadata(name, result.changes[name], seconds, result.previews[name], **more)
        else:
            more["seconds"] = round(seconds, 2)
    return metadata


def markdown_table(frame: pl.DataFrame, rows: int = PREVIEW_ROWS, width: int = PREVIEW_CHARACTERS) -> str:
    """Return the first rows as a Markdown table; values are cut at `width`, columns with document text left out."""
    part = frame.head(rows).select(c for c in frame.columns if c not in _PRIVATE)
    texts = [["" if value is None else str(value) for value in row] for row in part.iter_rows()]
    lines = [part.columns, ["---"] * part.width, *([as_markdown(cut(text, width)) for text in row] for row in texts)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` characters, without secrets: they are masked before one is cut in two."""
    masked = shown(text)
    return masked if len(masked) <= width else masked[: width - 1] + "…"


def usage_metadata(by_task: UsageByTask) -> dict[str, Any]:
    """Sum of model calls as numbers the UI plots, and by task as a table; nothing if there were none."""
    if not by_task:
        return {}
    numbers = {f"llm/{name}": sum((sums[name] for sums in by_task.values()), zero) for name, zero in _USAGE.items()}
    table = pl.DataFrame([{"task": task, **sums} for task, sums in by_task.items()])
    return {**numbers, "llm/by_task": dg.MetadataValue.md(markdown_table(table, table.height))}
