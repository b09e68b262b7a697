"""The publication: what people and queries read, switched in when the blocking checks have passed.

A run would change nothing if the digest of its inputs is that of what the last publication was made from.
"""

import contextlib
import logging
from typing import Any

import polars as pl

from graphrag_assets import __version__
from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.index import Index, ledger_entries
from graphrag_assets.assets.scan import Scan, present_inputs
from graphrag_assets.assets.stage import CODE_VERSIONS, Run, StageResult, stage
from graphrag_assets.errors import CheckError, StoreError
from graphrag_assets.ids import stable_id
from graphrag_assets.pictures.graph_map import MAX_ENTITIES, graph_map, in_markdown
from graphrag_assets.pipeline.layout import layout
from graphrag_assets.store import schema
from graphrag_assets.store.batches import REFRESHED, inputs_of, record_inputs, recorded_inputs, stages_behind, trim_runs
from graphrag_assets.store.decisions import read_decisions
from graphrag_assets.store.index_database import replace_table
from graphrag_assets.store.index_files import STABLE_NAME, kept_publications, publication_file
from graphrag_assets.store.publication_writer import Publication, intact_publication, publication_shape, publish
from graphrag_assets.store.publications import count_changes, counts_in_words, state_in_words

log = logging.getLogger(__name__)


# What people and scans write, not the stages.
_PROFILES = "SELECT version, id, adopted FROM prompt_profile ORDER BY ALL"
_UNREADABLE = "SELECT * EXCLUDE (first_seen) FROM index_errors WHERE stage = 'scan' ORDER BY ALL"
_FAILED = "SELECT count(*) FROM index_runs WHERE run_id = $run AND list_sum([u.failures FOR u IN usage]) > 0"


# It has no freshness policy: those of Dagster go by the calendar, and an index whose input has not changed is fresh.
# The check publication_is_up_to_date says when it has changed. Its assets are made from all tables, through these two.
@stage("publication", {"publication": ("embeddings", "community_reports")}, CODE_VERSIONS["publication"])
def publication(run: Run) -> StageResult:
    """Publish the working database, unless the newest publication has the same content.

    If another run has changed batches since a stage has read them, this is left to that run.

    Raises:
        CheckError: a blocking check failed.
    """
    index, folder = run.index, run.index.settings.index_folder
    published = _published(index)
    _record_up_to_date(index, run.run_id)
    metadata = {"publication": published.number, "new": published.is_new}
    if run.context:
        run.context.log.info(state_in_words(folder, published.number, published.is_new))
        metadata |= _metadata(published, index)
    return StageResult(metadata=metadata)


def _published(index: Index) -> Publication:
    """Return the publication of the working database: a new one, or the newest."""
    with index.working.connect() as connection:
        stages = stages_behind(connection)
    if stages:
        said = f"Another run has changed batches after {', '.join(stages)}: publishing is left to it."
        newest = intact_publication(index.working, index.settings.index_folder)
        if newest is None:
            raise CheckError(f"Not published. {said} If there is no other run, start `graphrag-assets index`.")
        log.warning("%s If there is no other run, start `graphrag-assets index`.", said)
        return newest
    if failed := failed_blocking_checks(index):
        reasons = " ".join(f"{check.statement} {check.remedy}" for check in failed)
        raise CheckError(f"Not published. Check failed: {reasons}")
    settings, values = index.settings, made_with(index)
    rows = pl.DataFrame({"name": list(values), "value": list(values.values())})
    with index.working.transaction() as connection:
        replace_table(connection, schema.INDEX_SETTINGS, rows)
        trim_runs(connection)

    published = publish(index.working, settings.index_folder, llm_calls=ledger_entries(settings))
    with index.working.transaction() as connection:
        record_inputs(connection, "published", inputs_of(connection))
    return published


def made_with(index: Index) -> dict[str, str | None]:
    """Name and value of what shapes an index: its settings, the input folder, what performs each task, the code."""
    settings, models = index.settings, index.models()
    return {
        **settings.as_rows(),
        "input": settings.input_as_given,
        "extractor": models.extractor,
        "summarizer": models.summarizer,
        "reporter": models.reporter,
        "embedding_model": models.embedding_model,
        "prompt_profile": index.profile.id if index.profile else "",
        "code_versions": ", ".join(f"{name}={version}" for name, version in CODE_VERSIONS.items()),
    }


def inputs_digest(index: Index) -> str:
    """Hash of batches, decisions, prompt profiles, names of no batches, settings, models, versions."""
    recorded = index.working.read_all(_PROFILES, _UNREADABLE)
    rows: list[tuple[Any, ...]] = [row for frame in recorded for row in frame.iter_rows()]
    decisions = read_decisions(index.settings.index_folder)
    values = sorted(made_with(index).items())
    return stable_id("refresh", present_inputs(index), __version__, publication_shape(), *rows, *decisions, *values)


def record_inputs_of_run(index: Index) -> None:
    """Record, before the graph is made, what it is made from."""
    digest = inputs_digest(index)
    with index.working.transaction() as connection:
        record_inputs(connection, "run", digest)


def _record_up_to_date(index: Index, run_id: str) -> None:
    """Record what has been published, unless that has changed since, or a model's answer failed."""
    digest, failed = inputs_digest(index), index.working.read(_FAILED, {"run": run_id}).item()
    published = recorded_inputs(index.working, "published") == present_inputs(index)
    if published and not failed and recorded_inputs(index.working, "run") == digest:
        with index.working.transaction() as connection:
            record_inputs(connection, REFRESHED, digest)


def up_to_date(index: Index, scanned: Scan) -> Publication | None:
    """Return the newest publication, if a run over all of `found` would change nothing; else None.

    The publication was opened, and pointer and link lead to a whole one.
    """
    if scanned.due or recorded_inputs(index.working, REFRESHED) != inputs_digest(index):
        return None
    return intact_publication(index.working, index.settings.index_folder)


def _metadata(published: Publication, index: Index) -> dict[str, Any]:
    """Metadata of the publication: what changed, where it is, how large, its map."""
    entities, relationships, members = index.working.read_all(
        "SELECT id, title, degree FROM entities",
        "SELECT source_id, target_id, weight FROM relationships",
        "FROM community_members WHERE level = 0",
    )
    drawn = entities.sort("degree", "title", descending=[True, False]).head(MAX_ENTITIES)
    positions = layout(drawn, members, relationships)
    return {
        "summary": _summary(published, index),
        "map": in_markdown(graph_map(entities, relationships, members, positions), "The map of the graph"),
        "path": (index.settings.index_folder / STABLE_NAME).absolute(),
        "megabytes": round(published.path.stat().st_size / 1e6, 2),
    }


def _summary(published: Publication, index: Index) -> str:
    """Return what differs from the publication before, in Markdown."""
    folder = index.settings.index_folder
    before = [number for number in kept_publications(folder) if number < published.number]
    lines = [state_in_words(folder, published.number, published.is_new)]
    if published.is_new and before:
        with contextlib.suppress(StoreError):  # of the publication before: it is of another version, or damaged
            counts = count_changes(publication_file(folder, before[-1]), published.path)
            kinds = counts["what"].unique(maintain_order=True)
            lines += [f"- {kind}: {counts_in_words(counts, kind)}" for kind in kinds]
    return "\n".join(lines)
