"""The cost preview: runs all stages on a copy of the database, with models that only count."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from graphrag_assets.conversion.limits import ConversionLimits
from graphrag_assets.conversion.process import ConversionProcess
from graphrag_assets.indexing.communities import update_communities
from graphrag_assets.indexing.embeddings import update_embeddings
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import index_batch, load_options
from graphrag_assets.indexing.merge_graph import merge_graph
from graphrag_assets.indexing.reports import update_reports
from graphrag_assets.indexing.scan import scan
from graphrag_assets.pipeline.loading import load_documents
from graphrag_assets.store.drafts import draft_folder
from graphrag_assets.text.languages import without_names

_RUN = "preview"
_NAMED_BATCHES = 20


@dataclass(frozen=True)
class CostPlan:
    """The cost of the next `index`.

    Attributes:
        batches: batches to index.
        costs: task, batch, calls (to pay), in_ledger (already paid), prompt_tokens, completion_tokens, cost_usd
            (null: no price is known), exact (all prompts could be counted).
        notes: what the numbers are based on, in sentences.
    """

    batches: list[str]
    costs: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all tasks; None if a price is unknown."""
        costs = self.costs["cost_usd"]
        return None if costs.null_count() else float(costs.sum())

    @property
    def by_task(self) -> pl.DataFrame:
        """The costs over all batches, in the order of the tasks."""
        return self.costs.group_by("task", maintain_order=True).agg(
            pl.exclude("task", "batch", "cost_usd", "exact").sum(),
            pl.when(pl.col("cost_usd").null_count() == 0).then(pl.col("cost_usd").sum()),
            pl.col("exact").all(),
        )


_OPEN_CANDIDATES = "SELECT count(*) FROM entity_candidates WHERE decision = ''"
_JUDGE = "Names that may be one thing are judged on request only: `graphrag-assets resolve judge`."


def plan_index(index: Index) -> CostPlan:
    """A dry run of indexing the changed batches and refreshing what is derived from them.

    Sends nothing, and writes only a temporary copy of the working database. The embedded default's extraction stands
    in for extractions that are not paid for yet.

    Raises:
        InputError: the input folder cannot be read.
    """
    from graphrag_assets.extras.cost_preview import dry_run  # imports litellm

    changes = scan(index)
    todo, read_again = changes.due, _read_again(changes.read_again)
    settings, tally = index.settings, dry_run.tally_of(index.settings)
    if not settings.calls_models:
        costs = dry_run.cost_frame(settings, tally)
        why = f"{settings.embedding_model} runs on this machine" if settings.embeds_locally else "No model is set"
        return CostPlan(todo, costs, (f"{why}, so nothing is paid for.", *read_again, *_without_names(index, todo)))
    with draft_folder(settings.index_folder) as drafts:
        copy = index.on_copy(drafts / "working.duckdb")
        index.working.copy_to(copy.working.path)
        for batch in todo:
            own = copy.with_run_options(batch)
            index_batch(own, batch, dry_run.counting_models(own.settings, batch, tally, own.profile), _RUN)
        own = copy.with_run_options(None)
        models = dry_run.counting_models(own.settings, None, tally, own.profile)
        merge_graph(own, models, _RUN)
        update_communities(own, _RUN)
        update_reports(own, models, _RUN)
        update_embeddings(own, models, _RUN)
    notes = [
        *read_again,
        *dry_run.notes(settings, tally),
        *(_without_names(index, todo) if settings.choices.extraction == "embedded" else ()),
        *([_JUDGE] if settings.chat_model and index.working.read(_OPEN_CANDIDATES).item() else ()),
    ]
    return CostPlan(todo, dry_run.cost_frame(settings, tally), tuple(notes))


def _read_again(batches: Mapping[str, tuple[str, ...]]) -> list[str]:
    """A note on batches whose files have not changed; nothing if there are none."""
    if not batches:
        return []
    named = "; ".join(f"{batch} ({', '.join(formats)})" for batch, formats in list(batches.items())[:_NAMED_BATCHES])
    more = f"; and {len(batches) - _NAMED_BATCHES:,} more" if len(batches) > _NAMED_BATCHES else ""
    return [
        f"Read again, because this version reads these formats otherwise: {named}{more}. Text units whose text "
        "stays are not paid for again."
    ]


def _without_names(index: Index, batches: list[str]) -> list[str]:
    """A note on documents of the batches in which the embedded default finds no names, if there are any."""
    languages: list[str] = []
    for batch in batches:
        own = index.with_run_options(batch)
        if own.input.has(batch):
            files = own.input.files(batch)
            with ConversionProcess(ConversionLimits()) as convert:
                loaded = load_documents(batch, files, load_options(own.settings), convert)
            languages += loaded.documents["language"].to_list()
    note = without_names(languages)
    return [f"{note}."] if note else []
