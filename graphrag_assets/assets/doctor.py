"""Checks models before anything is paid for: whether they answer, and what extraction finds in a few text units."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import read_batch
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.errors import GraphRAGError
from graphrag_assets.pipeline.batch import units_to_extract
from graphrag_assets.settings import Settings, Use


class CheckedModel(NamedTuple):
    """A model, its tasks, and what its reply showed, or the error; with what the question used."""

    tasks: str
    model: str
    finding: str
    error: str = ""
    tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0


class UnitYield(NamedTuple):
    """What the extraction of one text unit, or the mean one, found and used; nothing for answers from the ledger.

    `invalid`: records that were left out, because they had not the form that was asked for.
    """

    text_unit: str
    entities: float
    relationships: float
    claims: float
    invalid: float
    tokens: float
    seconds: float
    cost_usd: float
    error: str = ""


def check_models(settings: Settings) -> Iterator[CheckedModel]:
    """Ask each configured model one tiny question: those of indexing, and the one that answers questions."""
    if settings.embeds_locally:
        yield _check_local_embeddings(settings)
    tasks: dict[Use, list[str]] = {"extraction": settings.model_tasks} if settings.model_tasks else {}
    if settings.model_of("query"):
        tasks["query"] = ["questions"]
    if not tasks and not settings.embeds_remotely:
        return
    from graphrag_assets.llm.event_loop import wait_for
    from graphrag_assets.llm.model_checks import model_checks  # imports litellm
    from graphrag_assets.llm.model_errors import ModelError

    for check in model_checks(settings, tasks):
        finding, error, began = "", "", time.monotonic()
        try:
            finding = wait_for(check.ask())
        except ModelError as problem:
            error = str(problem)
        used = check.usage.total
        tokens = used.prompt_tokens + used.completion_tokens
        seconds = time.monotonic() - began
        yield CheckedModel(", ".join(check.tasks), check.options.where, finding, error, tokens, seconds, used.cost_usd)


def _check_local_embeddings(settings: Settings) -> CheckedModel:
    from graphrag_assets.embedded import encoder_of

    began = time.monotonic()
    try:
        (vector,) = encoder_of(settings.embedding_model).embed_passages(["ready"])
    except GraphRAGError as problem:
        return CheckedModel("embeddings", settings.embedding_model, "", str(problem))
    finding, seconds = f"{len(vector)} dimensions", time.monotonic() - began
    return CheckedModel("embeddings", settings.embedding_model, finding, seconds=seconds)


def sample_yield(index: Index, n: int) -> Iterator[UnitYield]:
    """Extract `n` text units of the input folder, spread over its first batches, and return what each gave.

    Answers are stored in the ledger, so `index` does not pay for them again; nothing is written to the index.

    Raises:
        InputError: the input folder cannot be read.
        CircuitOpen, BudgetExceeded, LedgerError: no text unit can be extracted.
    """
    models = index.models()
    for unit in sample_units(index, n):
        began, before = time.monotonic(), _usage(models)
        ((_, found),) = models.extract([unit])
        seconds, used = time.monotonic() - began, [after - b for after, b in zip(_usage(models), before, strict=True)]
        invalid, tokens, cost = int(used[0]), int(used[1]), used[2]
        if isinstance(found, Exception):
            yield UnitYield(unit.id, 0, 0, 0, invalid, tokens, seconds, cost, str(found))
        else:
            counts = len(found.entities), len(found.relationships), len(found.claims)
            yield UnitYield(unit.id, *counts, invalid, tokens, seconds, cost)


def mean_yield(found: list[UnitYield]) -> UnitYield:
    """The mean of the yields."""

    def mean(name: str) -> float:
        return sum(getattr(one, name) for one in found) / len(found)

    return UnitYield._make(["", *map(mean, UnitYield._fields[1:-1]), ""])


def sample_units(index: Index, n: int) -> list[TextUnit]:
    """`n` text units of the input folder, evenly spaced over as many of its first batches as have them."""
    folder, units = index.input, list[TextUnit]()
    for batch in folder.batches():
        documents, text_units, _ = read_batch(index.settings, batch, folder.files(batch))
        units += units_to_extract(text_units, documents, index.settings.metadata_column_list)
        if len(units) >= n:
            break
    return [units[place * len(units) // n] for place in range(n)] if len(units) > n else units


def _usage(models: IndexingModels) -> tuple[int, int, float]:
    """Invalid records, tokens and US dollars so far."""
    used = list(models.usage.values())
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in used)
    return sum(one.dropped_records for one in used), tokens, sum(one.cost_usd for one in used)
