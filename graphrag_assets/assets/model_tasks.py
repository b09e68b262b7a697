"""Extraction, summaries, reports and contexts by a chat model, and vectors of a provider, as `IndexingModels`.

The stages of the index are synchronous; each method here makes its calls concurrently.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from graphrag_assets.contracts.indexing_models import NO_KEYS, Extracted, IndexingModels, Keys
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import ReportMaterial, ReportRecord, TextUnit, UnitExtraction
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.embedded import EXTRACTOR, REPORTER, extract_unit
from graphrag_assets.embedded import summarize as most_central
from graphrag_assets.embedded import write_reports as embedded_reports
from graphrag_assets.ids import stable_id
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.backend import chat_model, embedding_model
from graphrag_assets.llm.event_loop import run_concurrently, wait_for
from graphrag_assets.llm.model_options import SAME_ANSWER, ChatRequest, Completion
from graphrag_assets.llm.prompts import Prompts, prompts_of
from graphrag_assets.llm.task import Chat, Task, TaskModel
from graphrag_assets.llm.tasks.claims import CLAIM_DESCRIPTION
from graphrag_assets.llm.tasks.extract_graph import (
    MORE,
    PROMPT,
    TOGETHER,
    WITH_CLAIMS,
    ExtractionOptions,
    answers_together,
    extract_text_unit,
    first_request,
    units_together,
)
from graphrag_assets.llm.tasks.summarize_descriptions import (
    SUMMARIES,
    SUMMARY,
    Described,
    SummaryOptions,
    join_short,
    summaries_together,
    summarize_descriptions,
    things_together,
    whole_request,
)
from graphrag_assets.llm.tasks.write_report import GRAPH_REPORT, MAX_WORDS, TEXT_REPORT, CommunityReport, write_report
from graphrag_assets.pipeline.extraction import grounded
from graphrag_assets.pipeline.unit_contexts import place_line
from graphrag_assets.settings import Settings, names_in

log = logging.getLogger(__name__)
_SMALL = 2
"""Communities of at most so many members are reported from their own rows, without a call."""


SUMMARY_MIN_TOKENS = SummaryOptions().min_tokens
"""Below it a reader, or a model with a context, takes the descriptions as they are; a summary would cost a call."""


def with_models(
    models: IndexingModels,
    settings: Settings,
    batch: str | None,
    run_id: str | None,
    keys: Keys = NO_KEYS,
    profile: PromptProfile | None = None,
) -> IndexingModels:
    """`models` with the tasks and vectors that the settings give to models of a provider."""
    tasks, choices = indexing_tasks(settings, profile, batch, run_id, keys), settings.choices
    if choices.extraction == "model":
        models = replace(models, extractor=tasks.extractor, extract=tasks.extract)
    if choices.summaries == "model":
        models = replace(models, summarizer=tasks.summarizer, summarize=tasks.summarize)
    if choices.reports == "model":
        models = replace(models, reporter=tasks.reporter, write_reports=tasks.write_reports)
    if settings.embeds_remotely:
        model, errors = embedding_model(settings, run_id, keys), models.embedding_errors

        def embed(texts: Sequence[str]) -> np.ndarray:
            return wait_for(model.embed(texts, batch=batch, run_id=run_id, errors=errors))

        models = replace(models, embedding_model=settings.embedding_name, embed=embed, meters=(model.usage,))
    return replace(models, meters=(tasks.meter, *models.meters))


def indexing_tasks(
    settings: Settings,
    profile: PromptProfile | None = None,
    batch: str | None = None,
    run_id: str | None = None,
    keys: Keys = NO_KEYS,
) -> "IndexingTasks":
    """Return the tasks of indexing by the chat model of the settings."""
    meter = UsageMeter()

    @functools.cache
    def chat() -> ChatModel:
        model = chat_model(settings, run_id, keys)
        model.usage = meter
        return model

    return IndexingTasks(settings, prompts_of(settings, profile), chat, batch, run_id, meter)


@dataclass(frozen=True)
class IndexingTasks:
    """The tasks that indexing gives to a chat model; the methods are those of `IndexingModels`.

    `batch` and `run_id` are recorded in the ledger; `meter` counts the usage of `chat`, for lines on progress.
    `options`: of the extraction, in place of those that follow from the settings.
    """

    settings: Settings
    prompts: Prompts
    chat: Callable[[], Chat]
    batch: str | None = None
    run_id: str | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)
    options: ExtractionOptions | None = None

    @property
    def extractor(self) -> str:
        """Fingerprint of extractions; see `EXTRACTOR` for the parts of the embedded default."""
        options, columns = self.extraction, self.settings.metadata_column_list
        names = (PROMPT, TOGETHER, MORE)
        by_model = self._fingerprint(names, options, *([columns] if columns else []))
        return f"{by_model}+{EXTRACTOR}" if self.settings.choices.claims == "embedded" else by_model

    @property
    def summarizer(self) -> str:
        """Fingerprint of summaries of descriptions."""
        return self._fingerprint((SUMMARY.name, SUMMARIES.name), self.summaries)

    @property
    def reporter(self) -> str:
        """Fingerprint of reports."""
        return self._fingerprint((self.report.name,), self._language, MAX_WORDS)

    @property
    def extraction(self) -> ExtractionOptions:
        """Options of the extraction."""
        if self.options:
            return self.options
        settings = self.settings
        claims = settings.claim_description.strip() or CLAIM_DESCRIPTION
        return ExtractionOptions(
            entity_types=self._types("entity_types"),
            relationship_types=self._types("relationship_types"),
            claim_description=claims if settings.choices.claims == "model" else None,
            max_gleanings=settings.max_gleanings,
            language=self._language,
        )

    def _fingerprint(self, names: Iterable[str], *options: object) -> str:
        """Return the model's name with a hash of its prompts, options and parameters."""
        parts: list[object] = [*(self.prompts.fingerprint(name) for name in names), *options]
        parameters = {
            name: value for name, value in self.settings.parameters_of("extraction").items() if name not in SAME_ANSWER
        }
        if parameters:
            parts.append(parameters)
        return f"{self.settings.model_of('extraction')}#{stable_id(*parts)[:8]}"

    @property
    def report(self) -> Task[CommunityReport]:
        """The task of community reports."""
        return TEXT_REPORT if self.settings.reports_from_text else GRAPH_REPORT

    @property
    def summaries(self) -> SummaryOptions:
        """Options of the summaries of descriptions."""
        settings = self.settings
        return SummaryOptions(SUMMARY_MIN_TOKENS, language=self._language, encoding=settings.tokenizer)

    @property
    def model(self) -> TaskModel:
        """The chat model with its prompts, for what concerns the whole index."""
        return TaskModel(self.chat(), self.prompts, run_id=self.run_id)

    @property
    def _language(self) -> str | None:
        profile = self.prompts.profile
        return self.settings.language or (profile.language_name if profile else None)

    def _types(self, name: Literal["entity_types", "relationship_types"]) -> tuple[str, ...]:
        """Return the types of the profile, unless the setting names some."""
        profile = self.prompts.profile
        kinds = () if profile is None or name in self.settings.model_fields_set else getattr(profile, name)
        return tuple(kind.type for kind in kinds) or names_in(getattr(self.settings, name))

    def _of_batch(self, what: str) -> str:
        return f"{what} of batch {self.batch}" if self.batch else what

    def first_request(self, unit: TextUnit, options: ExtractionOptions) -> ChatRequest:
        """Return the request for the extraction of a text unit by itself."""
        model, where = replace(self.model, batch=self.batch, unit=unit.id), (unit.document_date, unit.metadata)
        return first_request(model, unit.text, options, *where, self._place(unit))

    def _place(self, unit: TextUnit) -> str:
        return place_line(unit.headings, unit.text, unit.document_date)

    def extract(self, units: Iterable[TextUnit]) -> Iterator[Extracted]:
        """Yield extractions of text units, as they complete; short ones of a file are asked about in one request."""
        options, claims, model, units = self.extraction, self.settings.choices.claims, self.model, list(units)
        packs = {unit.id: pack for pack in units_together(units, self.settings.tokenizer) for unit in pack.items}
        requests = {unit.id: self.first_request(unit, options) for unit in units}

        async def ask(together: list[TextUnit]) -> list[Completion | None]:
            return await answers_together(model, [requests[unit.id] for unit in together], options)

        async def extract_one(unit: TextUnit) -> UnitExtraction:
            answer = await packs[unit.id].answer(unit, ask)
            extraction = await extract_text_unit(model, unit.text, requests[unit.id], options, answer)
            texts = (unit.title, unit.headings, self._place(unit), unit.metadata, unit.text)
            extraction = grounded(extraction, "\n".join(texts))
            return replace(extraction, claims=(await _embedded(unit)).claims) if claims == "embedded" else extraction

        task = WITH_CLAIMS if options.claim_description else PROMPT
        for unit, extraction in run_concurrently(extract_one, units, self._of_batch("text units"), self.meter):
            if isinstance(extraction, UnitExtraction):
                gleanings, invented = int(bool(extraction.losses.failed_gleaning)), extraction.losses.invented_claims
                self.meter.add(task, Usage(failed_gleanings=gleanings, invented_claims=invented))
            yield unit.id, extraction

    def summarize(self, descriptions: pl.DataFrame) -> pl.DataFrame:
        """One description per key: short ones are joined, others summarized, several things in a request.

        Descriptions come by the date of their document, the newest last; where there are several, with the date.
        """
        date = pl.col("dated").max() if "dated" in descriptions.columns else pl.lit(None, pl.Date).alias("dated")
        texts = (
            descriptions.filter(pl.col("description") != "")
            .group_by("key", "description")
            .agg(pl.col("title").min(), date)
            .sort("key", "dated", "description", nulls_last=True)
            .with_columns(several=pl.len().over("key") > 1)
            .with_columns(
                pl.when(pl.col("several") & pl.col("dated").is_not_null())
                .then(pl.format("{} ({})", "description", "dated"))
                .otherwise("description")
                .alias("text")
            )
            .group_by("key", maintain_order=True)
            .agg(pl.col("title").min(), pl.col("text").alias("texts"))
        )
        written, long = join_short((Described(*row) for row in texts.rows()), self.summaries)
        summaries = self._summaries(long)
        failed: list[str] = []
        for key, summary in summaries.items():
            if isinstance(summary, Exception):
                log.warning(
                    "a description summary failed; the embedded default's is used until the next run: %s", summary
                )
                failed.append(key)
            else:
                written[key] = summary
        summarized = pl.DataFrame(list(written.items()), {"key": pl.String, "description": pl.String}, orient="row")
        if failed:
            summarized = pl.concat([summarized, most_central(descriptions.filter(pl.col("key").is_in(failed)))])
        return summarized.sort("key")

    def _summaries(self, things: Iterable[Described]) -> dict[str, str | Exception]:
        """Return the summary, or the error, of each thing by its key; several are asked for in a request.

        Only things that the ledger has no answer for share requests: so few changes among many need few of them.
        """
        model, options, things = self.model, self.summaries, sorted(things)
        whole = {one.key: request for one in things if (request := whole_request(model, one, options))}

        async def is_due(key: str) -> bool:
            return not await model.chat.stored_answer(whole[key]) and not await model.chat.given_up(whole[key])

        looked_up = dict(run_concurrently(is_due, whole, "description summaries in the ledger"))
        requests = {one.key: (one, whole[one.key]) for one in things if looked_up.get(one.key) is True}
        packs = {key: pack for pack in things_together(model, requests, options) for key in pack.items}

        async def ask(together: list[str]) -> list[Completion | None]:
            return await summaries_together(model, [requests[key] for key in together])

        async def summarize_one(thing: Described) -> str:
            answer = await packs[thing.key].answer(thing.key, ask) if thing.key in packs else None
            if answer:
                return str(answer.parsed.description)
            return await summarize_descriptions(model, thing.title, thing.descriptions, options)

        summaries = run_concurrently(summarize_one, things, "description summaries", self.meter)
        return {thing.key: summary for thing, summary in summaries}

    def write_reports(self, materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        """Return a report per material, in order; those of small communities, and those that fail, are extractive."""
        model, task, language = self.model, self.report, self._language
        large = [place for place, material in enumerate(materials) if material.size > _SMALL]
        small = [place for place, material in enumerate(materials) if material.size <= _SMALL]

        async def write_one(place: int) -> ReportRecord:
            return await write_report(model, task, materials[place], language)

        written: dict[int, ReportRecord] = {}
        for place, report in run_concurrently(write_one, large, "community reports", self.meter):
            if isinstance(report, Exception):
                log.warning("a community report failed; the embedded default's is used until the next run: %s", report)
            else:
                written[place] = report
        failed = [place for place in large if place not in written]
        written |= zip(small, embedded_reports([materials[place] for place in small]), strict=True)
        for place, report in zip(failed, embedded_reports([materials[p] for p in failed]), strict=True):
            written[place] = replace(report, writer=REPORTER)
        return [written[place] for place in range(len(materials))]


async def _embedded(unit: TextUnit) -> UnitExtraction:
    """Return the embedded default's extraction, in a thread so that replies of models are received meanwhile."""
    return await asyncio.to_thread(extract_unit, unit.text, unit.title, unit.language)
