"""The backend of language models: extraction, summaries, reports and embeddings through litellm.

The assets' steps are synchronous; here their work becomes concurrent calls on one event loop. How many calls run at
once, what they may cost and what is never paid twice is the matter of `models/llm`.
"""

import asyncio
import functools
import logging
import os
import queue
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from dotenv import load_dotenv

from graphrag_assets.embedded import REPORTER
from graphrag_assets.embedded.centrality import summarize as most_central
from graphrag_assets.embedded.reporter import write_reports as extractive_reports
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing_models import NO_KEYS, Extracted, IndexingModels, Keys
from graphrag_assets.llm import (
    Budget,
    ChatModel,
    ChatOptions,
    EmbeddingModel,
    EmbeddingOptions,
    Ledger,
    LimitOptions,
    Limits,
    PriceOptions,
    UsageMeter,
)
from graphrag_assets.llm.event_loop import submit, wait_for
from graphrag_assets.llm.prompts import Prompts
from graphrag_assets.llm.tasks.answer_questions import ChatAnswerer
from graphrag_assets.llm.tasks.chat_protocol import Chat, Origin, stops_the_run
from graphrag_assets.llm.tasks.extract_claims import ClaimOptions
from graphrag_assets.llm.tasks.extract_graph import ExtractionOptions, extract_text_unit
from graphrag_assets.llm.tasks.summarize_descriptions import SummaryOptions, summarize_descriptions
from graphrag_assets.llm.tasks.write_context import TASK as CONTEXT_TASK
from graphrag_assets.llm.tasks.write_context import ContextOptions, write_context
from graphrag_assets.llm.tasks.write_report import ReportOptions, write_report
from graphrag_assets.progress import SECONDS_BETWEEN_LINES, Progress
from graphrag_assets.records import PlacedUnit, ReportMaterial, ReportRecord, TextUnit
from graphrag_assets.settings import Settings

log = logging.getLogger(__name__)
_SMALL = 2
"""Communities of so many members are reported from their own rows, without a call."""

_AT_A_TIME = 10  # calls begun in one turn of the event loop

Item = TypeVar("Item")
Result = TypeVar("Result")


@functools.lru_cache(maxsize=8)
def ledger_of(settings: Settings) -> Ledger:
    """The ledger of these settings; one per process, so that identical calls under way are sent once."""
    settings.index_folder.mkdir(parents=True, exist_ok=True)
    return Ledger(settings.ledger_url or settings.ledger_file)


@functools.lru_cache(maxsize=8)
def _budget_of(settings: Settings, run_id: str | None) -> Budget:
    return Budget(settings.budget_usd, ledger_of(settings).spent_today)


@functools.lru_cache(maxsize=8)
def prompts_of(settings: Settings) -> Prompts:
    """The prompt templates of these settings."""
    return Prompts(folder=Path(settings.prompts_dir) if settings.prompts_dir else None, tuned=settings.data / "prompts")


def _limits(settings: Settings, model: str, base_url: str | None) -> Limits:
    options = LimitOptions(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        max_retries=settings.max_retries,
        backoff_seconds=settings.backoff_seconds,
    )
    return Limits.of(model, base_url, options)


def chat_prices(settings: Settings) -> PriceOptions:
    """The chat model's prices as the settings have them."""
    return PriceOptions(settings.chat_input_usd_per_million, settings.chat_output_usd_per_million)


def embedding_prices(settings: Settings) -> PriceOptions:
    """The embedding model's price as the settings have it; its answers are free."""
    price = settings.embedding_usd_per_million
    return PriceOptions() if price is None else PriceOptions(price, 0.0)


def _key(name: str) -> str | None:
    """An API key from the environment, to which a `.env` file adds: that is where the settings come from too."""
    load_dotenv(".env")
    return os.environ.get(name)


def chat_model(
    settings: Settings, run_id: str | None = None, keys: Keys = NO_KEYS, cache_not_before: str | None = None
) -> ChatModel:
    """The chat model of the settings, with a usage meter of its own.

    Without a key in `keys` it comes from the environment. `cache_not_before`: see `ChatModel`.
    """
    base_url = settings.chat_base_url or None
    options = ChatOptions(
        model=settings.chat_model,
        base_url=base_url,
        api_key=keys.chat or _key("GRAPHRAG_CHAT_API_KEY"),
        timeout=settings.request_timeout,
        structured=settings.structured_output,
        prices=chat_prices(settings),
    )
    limits = _limits(settings, settings.chat_model, base_url)
    return ChatModel(options, ledger_of(settings), limits, _budget_of(settings, run_id), cache_not_before)


def embedding_model(settings: Settings, run_id: str | None = None, keys: Keys = NO_KEYS) -> EmbeddingModel:
    """The embedding model of the settings, with a usage meter of its own."""
    base_url = settings.embedding_base_url or None
    options = EmbeddingOptions(
        model=settings.embedding_model,
        base_url=base_url,
        api_key=keys.embedding or _key("GRAPHRAG_EMBEDDING_API_KEY"),
        prices=embedding_prices(settings),
    )
    limits = _limits(settings, settings.embedding_model, base_url)
    return EmbeddingModel(options, ledger_of(settings), limits, _budget_of(settings, run_id))


def extraction_options(settings: Settings) -> tuple[ExtractionOptions, ClaimOptions | None]:
    """What is asked of each text unit; no claim options when claims are switched off."""
    extraction = ExtractionOptions(
        entity_types=settings.entity_type_list,
        max_gleanings=settings.max_gleanings,
        language=settings.language or None,
    )
    claims = ClaimOptions(max_gleanings=settings.max_gleanings, language=settings.language or None)
    return extraction, claims if settings.extract_claims else None


def with_chat(
    backend: IndexingModels,
    settings: Settings,
    batch: str | None,
    run_id: str | None,
    keys: Keys = NO_KEYS,
    cache_not_before: str | None = None,
) -> IndexingModels:
    """`backend` with extraction, summaries and reports by the chat model of the settings."""
    chat = chat_model(settings, run_id, keys, cache_not_before)
    return replace(with_tasks(backend, settings, chat, batch, run_id, chat.usage), meters=(*backend.meters, chat.usage))


def with_tasks(
    backend: IndexingModels,
    settings: Settings,
    chat: Chat,
    batch: str | None,
    run_id: str | None,
    meter: UsageMeter | None = None,
) -> IndexingModels:
    """`backend` with extraction, summaries, reports and contexts asked of `chat`, as the settings want them.

    `meter`: what counts the use of `chat`, for the lines on progress.
    """
    prompts, language = prompts_of(settings), settings.language or None
    extraction, claims = extraction_options(settings)
    summaries = SummaryOptions(language=language, encoding=settings.encoding)
    reports = ReportOptions(settings.report_words, language)
    contexts = ContextOptions(language=language, encoding=settings.encoding)

    def extract(units: Iterable[TextUnit]) -> Iterator[Extracted]:
        async def one(unit: TextUnit) -> Extracted:
            origin = Origin(batch, unit.id, run_id)
            found = await extract_text_unit(chat, prompts, unit.text, extraction, claims, origin)
            return unit.id, found.extraction

        for unit, found in as_they_come(one, units, "text units", meter):
            yield (unit.id, found) if isinstance(found, Exception) else found

    def summarize(descriptions: pl.DataFrame) -> pl.DataFrame:
        return _summaries(descriptions, chat, prompts, summaries, run_id, meter)

    def write(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        small = {place for place, material in enumerate(materials) if material.size <= _SMALL}
        written: dict[int, ReportRecord] = {}

        async def one(place: int) -> ReportRecord:
            return await write_report(chat, prompts, materials[place], reports, Origin(run_id=run_id))

        large = [place for place in range(len(materials)) if place not in small]
        for place, report in as_they_come(one, large, "community reports", meter):
            if isinstance(report, Exception):
                log.warning("a community report failed and is extractive until the next run: %s", report)
            else:
                written[place] = report
        for places, ranked in ((sorted(small), False), ([p for p in large if p not in written], True)):
            for place, report in zip(places, extractive_reports([materials[p] for p in places], ranked), strict=True):
                written[place] = replace(report, writer=REPORTER) if ranked else report
        return [written[place] for place in range(len(materials))]

    def write_contexts(units: Sequence[PlacedUnit]) -> Iterator[tuple[str, str | Exception]]:
        async def one(unit: PlacedUnit) -> str:
            return await write_context(chat, prompts, unit, contexts, Origin(batch, unit.id, run_id))

        # The first of each document goes ahead: it brings the document into the provider's prompt cache.
        ahead = list({unit.document: unit for unit in reversed(units)}.values())
        others = set(units) - set(ahead)
        for group in (ahead, [unit for unit in units if unit in others]):
            for unit, written in as_they_come(one, group, "text unit contexts", meter):
                yield unit.id, written

    return replace(
        backend,
        extractor=_fingerprint(settings, prompts, _EXTRACTION_TASKS, extraction, claims),
        extract=extract,
        summarize=summarize,
        reporter=_fingerprint(settings, prompts, ("community_report",), reports),
        write_reports=write,
        context_writer=_fingerprint(settings, prompts, (CONTEXT_TASK,), contexts),
        write_contexts=write_contexts,
    )


_EXTRACTION_TASKS = ("extract_graph", "extract_graph_continue", "extract_claims", "extract_claims_continue")


def _fingerprint(settings: Settings, prompts: Prompts, tasks: Iterable[str], *options: object) -> str:
    """The model's name with a hash of the prompts and options that it is asked with."""
    parts = [prompts.fingerprint(task) for task in tasks]
    return f"{settings.chat_model}#{stable_id(*parts, *options)[:8]}"


def _summaries(
    descriptions: pl.DataFrame,
    chat: Chat,
    prompts: Prompts,
    options: SummaryOptions,
    run_id: str | None,
    meter: UsageMeter | None,
) -> pl.DataFrame:
    """One description per key: summaries of several by the model, a single one as it is."""
    texts = (
        descriptions.filter(pl.col("description") != "")
        .group_by("key")
        .agg(pl.col("title").min(), pl.col("description").unique().sort().alias("texts"))
        .sort("key")
    )
    several = texts.filter(pl.col("texts").list.len() > 1)

    async def one(row: tuple[str, str, list[str]]) -> str:
        return await summarize_descriptions(chat, prompts, row[1], row[2], options, Origin(run_id=run_id))

    written: dict[str, str] = {}
    failed: list[str] = []
    for row, summary in as_they_come(one, several.rows(), "description summaries", meter):
        if isinstance(summary, Exception):
            log.warning("a description summary failed and is extractive until the next run: %s", summary)
            failed.append(row[0])
        else:
            written[row[0]] = summary
    single = texts.filter(pl.col("texts").list.len() == 1).select("key", pl.col("texts").list.first())
    made = pl.DataFrame(
        [*single.rows(), *written.items()], schema={"key": pl.String, "description": pl.String}, orient="row"
    )
    if failed:
        made = pl.concat([made, most_central(descriptions.filter(pl.col("key").is_in(failed)))])
    return made.sort("key")


def with_embeddings(
    backend: IndexingModels, settings: Settings, run_id: str | None, keys: Keys = NO_KEYS
) -> IndexingModels:
    """`backend` with vectors by the embedding model of the settings."""
    model = embedding_model(settings, run_id, keys)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return wait_for(model.embed(texts, run_id=run_id))

    return replace(
        backend, embedding_model=settings.embedding_model, embed=embed, meters=(*backend.meters, model.usage)
    )


def chat_answerer(settings: Settings) -> ChatAnswerer:
    """What answers questions by the chat model of the settings."""
    return ChatAnswerer(chat_model(settings), prompts_of(settings), settings.chat_model)


def as_they_come(
    work: Callable[[Item], Awaitable[Result]], items: Iterable[Item], what: str, meter: UsageMeter | None = None
) -> Iterator[tuple[Item, Result | Exception]]:
    """Items (`what` in messages) with their results, or what they failed of, in the order they are done.

    How far it is is told in the log, with what `meter` has counted meanwhile.

    Raises:
        BudgetExceeded, CircuitOpen, LedgerError: these concern the whole run; the calls not yet made are dropped.
            The message says how far it came.
    """
    results: queue.SimpleQueue[tuple[Item, Result | Exception] | None] = queue.SimpleQueue()
    listed = list(items)

    async def one(item: Item) -> None:
        try:
            results.put((item, await work(item)))
        except Exception as error:
            results.put((item, error))
            if stops_the_run(error):
                raise

    async def all_of_them() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for place, item in enumerate(listed):
                    group.create_task(one(item))
                    if place % _AT_A_TIME == 0:
                        await asyncio.sleep(0)  # the first requests are on their way while others are made
        except* Exception:
            pass  # the result queue has it
        finally:
            results.put(None)

    progress = Progress(what, len(listed), (lambda: meter.total) if meter else None)
    running = submit(all_of_them())
    try:
        for item, found in _results(results, progress):
            if isinstance(found, Exception) and stops_the_run(found):
                left = progress.total - progress.done
                raise type(found)(f"{found} Done: {progress.done} of {progress.total} {what}, {left} are left.")
            progress.advance()
            yield item, found
    finally:
        running.cancel()  # an abandoned iteration leaves nothing running


_TOGETHER_SECONDS = 0.02


def _results(results: "queue.SimpleQueue[Result | None]", progress: Progress) -> Iterator[Result]:
    """What comes before the None, in groups: to wake for each by itself would keep the event loop from its work."""
    while (first := _next_of(results, progress)) is not None:
        yield first
        time.sleep(_TOGETHER_SECONDS)
        for _ in range(results.qsize()):
            if (result := results.get()) is None:
                return
            yield result


def _next_of(results: "queue.SimpleQueue[Result]", progress: Progress) -> Result:
    """The next result, however long it takes; meanwhile the log says every few seconds how far it is."""
    while True:
        try:
            return results.get(timeout=SECONDS_BETWEEN_LINES)
        except queue.Empty:
            progress.tell()
