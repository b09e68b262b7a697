"""What Dagster runs and shows of a stage: `asset_of` makes its assets; their metadata; the checks that run in its step.

The stages are in the modules of their steps. A check runs in the step that writes the last of the tables it reads.
"""

import contextlib
import inspect
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import dagster as dg
import polars as pl

from graphrag_assets.assets.checks import CHECKS, UP_TO_DATE, offending_rows, out_of_date
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import ASSET_OF, ASSETS, BATCH_ASSETS, BATCH_STATE, IndexNames
from graphrag_assets.assets.scan import Scan
from graphrag_assets.assets.stage import Stage, StageResult
from graphrag_assets.contracts.usage import Usage
from graphrag_assets.errors import GraphRAGError, masked_errors
from graphrag_assets.runtime.outgoing import as_markdown, listed, shown
from graphrag_assets.store import schema
from graphrag_assets.store.batches import UsageByTask
from graphrag_assets.store.index_database import Changes
from graphrag_assets.store.index_files import current_number
from graphrag_assets.store.invariants import Check

_TABLES = {table.name: table for table in (*schema.BATCH_TABLES, schema.BATCH_STATE, *schema.GLOBAL_TABLES)}
_DESCRIPTIONS = {
    "documents": "An unreadable file or row stops no other: the check no_input_is_skipped of batch_state shows it.",
    "text_units": "Every citation leads to one, and by its span to characters of the document.",
    "entity_mentions": "They change only with the text, the prompt or the model. Most of a model's cost is here.",
    "relationship_mentions": "Extracted in the same step as entity_mentions.",
    "covariates": "Claims with subject, object and dates, extracted in the same step as the mentions.",
    "entities": "Several descriptions are summarized. The table entity_aliases has their other names.",
    "relationships": "The weight grows with the number and the strength of the mentions.",
    "communities": "They change only where the graph has changed. The table community_members has the members.",
    "community_reports": "A report is rewritten only when its inputs have changed. With a language model, each costs "
    "a call. The table citations has their references, each resolved and checked.",
    "embeddings": "A text is embedded again when it, or the model, has changed. The table entity_candidates has pairs "
    "of entities that may be one thing, see `graphrag-assets resolve`.",
    "batch_state": "Its step first indexes the batches that are due.",
    "publication": "graphrag.duckdb: a new compact file shaped for reading, numbered, and switched in atomically. Open "
    "it with any DuckDB tool; it never blocks indexing and is never blocked by it.\n\n"
    "While a blocking check fails, nothing is published. The check publication_is_up_to_date compares it with the "
    "input folder.",
}
"""Shown after the description of one row."""


@contextlib.contextmanager
def masked() -> Iterator[None]:
    """Fail a step with the message of our errors alone.

    Secrets in errors are masked. Nothing is retried: each message names a remedy that a person applies.
    """
    try:
        with masked_errors():
            yield
    except GraphRAGError as error:
        raise dg.Failure(str(error), allow_retries=False) from error  # the UI shows the description first


def asset_of(names: IndexNames, stage: Stage, config_type: type[dg.Config] = dg.Config) -> dg.AssetsDefinition:
    """Return the assets of a stage and their checks, made by one step.

    It writes all tables of the stage, reports the selected assets, and runs the selected checks.
    """

    @dg.multi_asset(
        name=names.name(stage.name),
        specs=[asset_spec(names, asset, stage.group, deps, stage.version) for asset, deps in stage.assets.items()],
        check_specs=check_specs(names, stage.assets),
        description=inspect.getdoc(stage.compute),
        can_subset=True,
        pool=names.pool,
        required_resource_keys={names.resource},
    )
    def step(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]  # each stage has its own
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        index = names.index(context.resources)
        with masked():
            if assets := selected(context):
                started = time.monotonic()
                result = stage.update(index, context.run.run_id, config=config, context=context, names=names)
                metadata = stage_metadata(stage, result, time.monotonic() - started, index)
                versions = index.working.content_versions(assets)
                for name, key in assets.items():
                    version = dg.DataVersion(versions[name])
                    yield dg.MaterializeResult(key, metadata=metadata[name], data_version=version)
            yield from check_results(names, {key.name for key in context.selected_asset_check_keys}, index)

    return step


def selected(context: dg.AssetExecutionContext) -> dict[str, dg.AssetKey]:
    """Keys of the assets selected for this step, by name, in the order in which data flows."""
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    return {name: keys[name] for name in ASSETS if name in keys}


def asset_spec(names: IndexNames, name: str, group: str, deps: tuple[str, ...], version: str) -> dg.AssetSpec:
    """Return the spec of an asset; that of a table has its comment and columns."""
    metadata, description = dict[str, Any](), _DESCRIPTIONS[name]
    if table := _TABLES.get(name):
        columns = [dg.TableColumn(c.name, c.type, description=c.comment) for c in table.columns]
        metadata = {"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": name}
        description = f"{table.comment}\n\n{description}"
    return dg.AssetSpec(
        names.key(name),
        deps=names.keys(deps),
        group_name=names.group_name(group),
        code_version=version,
        description=description,
        kinds={"duckdb"},
        skippable=True,
        metadata=metadata,
    )


PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
REMEDY_CHARACTERS = 400  # errors and remedies are read in full
# The event log is permanent: text of documents stays out of it.
_PRIVATE = {"text", "context", "description", "raw_data", "source_text", "summary", "full_content", "full_content_json"}
_PRIVATE |= {"findings", "rating_explanation", "vector"}
_PARTITIONED = {table.name for table in schema.BATCH_TABLES}
_USAGE = Usage().as_dict()
_PREVIEWED = (
    *("kind", "title", "type", "degree", "frequency", "rank", "size", "level", "source", "target", "weight"),
    *("subject_id", "object_id", "status", "language", "n_tokens", "model"),
)
"""Columns of a preview: not hashes, lists, or what documents say."""
_SIZES = ("degree", "weight", "rank", "size")
_MARKDOWN = {"summary", "map"}
"""Metadata that the UI shows as Markdown."""
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


def stage_metadata(stage: Stage, result: StageResult, seconds: float, index: Index) -> Metadata:
    """Metadata of the assets of a stage, which took `seconds`; what is not of one of them is of the first."""
    metadata: Metadata = {name: {} for name in stage.assets}
    first = metadata[next(iter(metadata))]
    first |= {**result.metadata, **usage_metadata(result.usage)}
    first |= {name: dg.MetadataValue.md(first[name]) for name in _MARKDOWN & first.keys()}
    for name, more in metadata.items():
        if name in result.changes:
            metadata[name] = table_metadata(name, result.changes[name], seconds, _first_rows(index, name), **more)
        else:
            more["seconds"] = round(seconds, 2)
    return metadata


def _first_rows(index: Index, name: str) -> pl.DataFrame:
    """Return the largest rows of a table, by the first of the columns that say how large one is; none without."""
    size = next((size for size in _SIZES if size in _TABLES[name].column_names), None)
    if size is None:
        return pl.DataFrame()
    return index.working.read(f"FROM {name} ORDER BY {size} DESC LIMIT {PREVIEW_ROWS}")


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


SAMPLE_ROWS = 20


def read_by(check: Check) -> set[str]:
    """Return the assets whose tables a check reads."""
    assets = {ASSET_OF[table] for table in check.reads if table in ASSET_OF}
    return assets | ({BATCH_STATE} if assets & {*BATCH_ASSETS} or "index_errors" in check.reads else set())


def asset_of_check(check: Check) -> str:
    """Return the asset that shows a check: the last one whose tables it reads, in whose step it runs."""
    return max({ASSET_OF[check.asset], *read_by(check)}, key=ASSETS.index)


def check_specs(names: IndexNames, assets: Iterable[str]) -> list[dg.AssetCheckSpec]:
    """Return the checks that run in the step of these assets, after it has written them."""
    return [
        dg.AssetCheckSpec(check.name, asset=names.key(asset), blocking=check.blocking, description=check.statement)
        for check in CHECKS
        if (asset := asset_of_check(check)) in assets
    ]


def check_results(names: IndexNames, selected: Collection[str], index: Index) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the checks with these names."""
    checks = [check for check in CHECKS if check.name in selected]
    for check, rows in zip(checks, offending_rows(checks, index), strict=True):
        yield dg.AssetCheckResult(
            check_name=check.name,
            asset_key=names.key(asset_of_check(check)),
            passed=rows.is_empty(),
            severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
            description=check.statement if rows.is_empty() else _problem(check, rows),
            metadata=_metadata(names, check, rows),
        )


def _problem(check: Check, rows: pl.DataFrame) -> str:
    """Return the first row that contradicts the statement of a check."""
    first = "; ".join(str(value) for value in rows.row(0) if value not in (None, ""))
    more = f" And {rows.height - 1} more." if rows.height > 1 else ""
    return f"Not so: {check.statement} {cut(first, REMEDY_CHARACTERS).rstrip('.')}.{more}"


def _metadata(names: IndexNames, check: Check, rows: pl.DataFrame) -> dict[str, Any]:
    if rows.is_empty():
        return {"offending_rows": 0}
    sample = dg.MetadataValue.md(markdown_table(rows, SAMPLE_ROWS, REMEDY_CHARACTERS))
    return {"offending_rows": rows.height, "remedy": names.in_words(check.remedy), "sample": sample}


def report_up_to_date(names: IndexNames, instance: dg.DagsterInstance, index: Index, scanned: Scan) -> None:
    """Report the check publication_is_up_to_date without a run of it, once there is a publication."""
    if not current_number(index.settings.index_folder):
        return
    rows = out_of_date(index, scanned)
    batches = rows.filter(pl.col("batch") != "")["batch"].to_list()
    said = [f"Not in the publication yet: {listed(batches)}. Launch the job update_index."] if batches else []
    said += rows.filter(pl.col("batch") == "")["problem"].to_list()
    evaluation = dg.AssetCheckEvaluation(
        names.key(UP_TO_DATE.asset),
        UP_TO_DATE.name,
        passed=rows.is_empty(),
        severity=dg.AssetCheckSeverity.WARN,
        description=names.in_words(" ".join(said)) or UP_TO_DATE.statement,
        metadata=_metadata(names, UP_TO_DATE, rows),
        blocking=False,
    )
    instance.report_runless_asset_event(evaluation)
