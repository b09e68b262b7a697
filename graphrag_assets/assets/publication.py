"""The publication: what people and queries read, switched in when the blocking checks have passed."""

import contextlib
from typing import Any

import polars as pl

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.publish import CODE_VERSION, record_up_to_date, update_publication
from graphrag_assets.assets.stage import Markdown, Run, Stage, StageResult
from graphrag_assets.contracts.records import OF_READ_TEXT, problems_in_words
from graphrag_assets.errors import StoreError
from graphrag_assets.pictures.graph_map import MAX_ENTITIES, graph_map
from graphrag_assets.pictures.svg import in_markdown
from graphrag_assets.pipeline.layout import layout
from graphrag_assets.runtime.outgoing import as_markdown, listed
from graphrag_assets.store.index_files import STABLE_NAME, kept_publications, publication_file
from graphrag_assets.store.publication_writer import Publication
from graphrag_assets.store.publications import compare, counts_in_words, state_in_words

_SKIPPED_SHOWN = 3


def _compute(run: Run) -> StageResult:
    index = run.index
    published = update_publication(index, run.run_id, run.checked())
    record_up_to_date(index, run.run_id)
    run.context.log.info(state_in_words(index.settings.index_folder, published.number, published.is_new))
    return StageResult({}, {}, {}, {"publication": _metadata(published, index)})


def _version(index: Index) -> str:
    return f"publication {index.working.read('SELECT max(number) FROM publication').item()}"


_COUNTED = ("documents", "text_units", "entities", "relationships", "covariates", "communities", "community_reports")
"""Tables whose rows are numbers of the publication."""


def _metadata(published: Publication, index: Index) -> dict[str, Any]:
    """Metadata of the publication: what changed, where it is, how large, its map."""
    entities, relationships, members, problems = index.working.read_all(
        "SELECT id, title, degree FROM entities",
        "SELECT source_id, target_id, weight FROM relationships",
        "FROM community_members WHERE level = 0",
        "SELECT stage, source, error FROM index_errors ORDER BY ALL",
    )
    drawn = entities.sort("degree", "title", descending=[True, False]).head(MAX_ENTITIES)
    positions = layout(drawn, members, relationships)
    return {
        "summary": Markdown(_summary(published, index, problems)),
        "map": Markdown(in_markdown(graph_map(entities, relationships, members, positions), "The map of the graph")),
        "publication": published.number,
        "new": published.is_new,
        "path": (index.settings.index_folder / STABLE_NAME).absolute(),
        "megabytes": round(published.path.stat().st_size / 1e6, 2),
        **{f"rows/{name}": published.rows[name] for name in _COUNTED},
    }


def _summary(published: Publication, index: Index, problems: pl.DataFrame) -> str:
    """What differs from the publication before, and what was skipped, in Markdown."""
    folder = index.settings.index_folder
    before = [number for number in kept_publications(folder) if number < published.number]
    lines = [state_in_words(folder, published.number, published.is_new)]
    if published.is_new and before:
        with contextlib.suppress(StoreError):  # of the publication before: it is of another version, or damaged
            counts = compare(publication_file(folder, before[-1]), published.path)["change_counts"]
            kinds = counts["what"].unique(maintain_order=True)
            lines += [f"- {kind}: {counts_in_words(counts, kind)}" for kind in kinds]
    if problems.height:
        skipped = problems.filter(~pl.col("stage").is_in(OF_READ_TEXT)).select("source", "error").iter_rows()
        named = listed([as_markdown(f"{source}: {error}") for source, error in skipped], _SKIPPED_SHOWN, "; ")
        what = ": ".join(filter(None, (problems_in_words(problems["stage"]), named)))
        lines.append(f"- {what}. Remedies: checks of `batch_state`, table `index_errors`.")
    return "\n".join(lines)


# It has no freshness policy: those of Dagster go by the calendar, and an index whose input has not changed is fresh.
# The check publication_is_up_to_date says when it has changed.
PUBLISH = Stage(
    "publication",
    "publication",
    {"publication": ("embeddings", "community_reports")},  # and through them, all tables
    CODE_VERSION,
    update_publication,
    _compute,
    _version,
)
