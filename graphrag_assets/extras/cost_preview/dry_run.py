"""The models of a dry run: they send nothing and count the requests that would be paid for."""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import polars as pl

from graphrag_assets.contracts.indexing_models import Extracted, IndexingModels
from graphrag_assets.contracts.prompt_profile import PromptProfile
from graphrag_assets.contracts.records import TextUnit, UnitExtraction
from graphrag_assets.embedded import extract_unit
from graphrag_assets.extras.cost_preview.token_estimates import (
    EMBED,
    EXTRACTION_TASKS,
    MIN_ANSWERS,
    RULES,
    Planned,
    PlanningChat,
    Tally,
)
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing.provider_models import without_sending
from graphrag_assets.llm.backend import chat_model, chat_prices, embedding_model, embedding_prices, ledger_of
from graphrag_assets.llm.chat_client import ChatModel
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prices import Prices
from graphrag_assets.llm.provider import missing_key, provider_of
from graphrag_assets.llm.tasks.extract_graph import PROMPT
from graphrag_assets.llm.tasks.summarize_descriptions import TASK as SUMMARIES
from graphrag_assets.llm.tasks.write_report import GRAPH, TEXT
from graphrag_assets.runtime.progress import duration_in_words
from graphrag_assets.settings import Settings, Use

SCHEMA = {
    "task": pl.String,
    "batch": pl.String,
    "calls": pl.Int64,
    "in_ledger": pl.Int64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "cost_usd": pl.Float64,
    "exact": pl.Boolean,
}
_PLANNED = {name: SCHEMA.get(name, pl.Int64) for name in Planned._fields}
_ORDER = [*RULES, EMBED]
_USES: dict[str, Use] = {
    **dict.fromkeys(EXTRACTION_TASKS, "extraction"),
    SUMMARIES: "summary",
    **dict.fromkeys((GRAPH, TEXT), "report"),
}


def tally_of(settings: Settings) -> Tally:
    """An empty tally with the mean length of the chat models' answers in the ledger, by task."""
    if not settings.asks_chat_model:
        return Tally()
    names = pl.DataFrame(
        [(task, provider_of(model_of(settings, task))[1]) for task in RULES], ["task", "model"], orient="row"
    )
    answers = ledger_of(settings).frame().filter(pl.col("kind") == "chat").join(names, on=["task", "model"], how="semi")
    means = answers.group_by("task").agg(pl.col("completion_tokens", "seconds").mean(), n=pl.len())
    means = means.filter(pl.col("n") >= MIN_ANSWERS)
    known, seconds = (dict(means.select("task", name).iter_rows()) for name in ("completion_tokens", "seconds"))
    return Tally(known, seconds, without_claims=Tally(known) if settings.choices.claims == "model" else None)


def counting_models(
    settings: Settings, batch: str | None, tally: Tally, profile: PromptProfile | None = None
) -> IndexingModels:
    """The models of the settings, whose calls are counted in `tally` instead of sent."""

    def count(model: EmbeddingModel, texts: Sequence[str]) -> None:
        exact = not tally.follows_guesses(EMBED)
        for place, tokens in enumerate(wait_for(model.unpaid(texts))):
            tally.planned[stable_id(EMBED, place, tokens)] = Planned(EMBED, None, tokens, 0, exact)

    chats = _planning_chats(settings, tally)
    models = without_sending(settings, chats, count, batch, profile)
    if settings.choices.extraction != "model":
        return models

    def extract(units: Iterable[TextUnit]) -> Iterator[Extracted]:
        units = list(units)
        for start in range(0, len(units), _UNITS):
            part = units[start : start + _UNITS]
            if tally.without_claims:
                bare = settings.model_copy(update={"claims": "off"})
                deque(counting_models(bare, batch, tally.without_claims, profile).extract(part), maxlen=0)
            yield from models.extract(chats("extraction").remembering(part))

    return replace(models, extract=extract)


def _planning_chats(settings: Settings, tally: Tally) -> Callable[[Use], PlanningChat]:
    @functools.cache
    def chats(use: Use) -> PlanningChat:
        return PlanningChat(chat_model(settings, use=use), tally, _extract, settings.tokenizer)

    return chats


_SECONDS_BEFORE_ANSWER, _TOKENS_PER_SECOND = 1.0, 50.0
"""How fast a chat model answers, as long as the ledger does not say."""
_UNITS = 500
"""So many text units are counted at a time, so that their substitutes are made once and kept no longer."""


@functools.lru_cache(maxsize=_UNITS)
def _extract(unit: TextUnit) -> UnitExtraction:
    return extract_unit(unit.text, language=unit.language)  # chat models are not shown the title


def cost_frame(settings: Settings, tally: Tally) -> pl.DataFrame:
    """The cost of a tally, a row per task and batch: the columns of `SCHEMA`.

    `calls` are still to be paid, `in_ledger` are paid; `exact`: whether all prompts could be counted. `cost_usd` is
    null where calls are to be paid and no price is known.
    """
    known = pl.DataFrame(tally.known, {"task": pl.String, "batch": pl.String}, orient="row")
    planned = pl.DataFrame(list(tally.planned.values()), _PLANNED, orient="row")
    counted = planned.group_by("task", "batch").agg(
        pl.len().cast(pl.Int64).alias("calls"),
        pl.col("prompt_tokens", "completion_tokens").sum(),
        pl.col("exact").all(),
    )
    paid = known.group_by("task", "batch").agg(pl.len().cast(pl.Int64).alias("in_ledger"))
    joined = counted.join(paid, on=["task", "batch"], how="full", coalesce=True, nulls_equal=True).with_columns(
        pl.col("calls", "in_ledger", "prompt_tokens", "completion_tokens").fill_null(0), pl.col("exact").fill_null(True)
    )
    counts = joined.select("task", "calls", "prompt_tokens", "completion_tokens")
    costs = [_cost(prices_of(settings, task), *numbers) for task, *numbers in counts.iter_rows()]
    order = pl.Series("order", [_ORDER.index(task) for task in joined["task"]], dtype=pl.Int64)
    frame = joined.with_columns(pl.Series("cost_usd", costs, dtype=pl.Float64), order)
    return frame.sort("order", "batch").select(list(SCHEMA))


def _cost(prices: Prices, calls: int, prompt_tokens: int, completion_tokens: int) -> float | None:
    return None if calls and prices.source == "unknown" else prices.cost(prompt_tokens, completion_tokens)


def prices_of(settings: Settings, task: str) -> Prices:
    """The prices of the model that performs `task`."""
    if task == EMBED:
        return Prices.of(settings.embedding_model, embedding_prices(settings))
    return Prices.of(model_of(settings, task), chat_prices(settings, _use_of(settings, task)))


def model_of(settings: Settings, task: str) -> str:
    """The model that performs `task`."""
    return settings.embedding_model if task == EMBED else settings.model_of(_use_of(settings, task))


def _use_of(settings: Settings, task: str) -> Use:
    return _USES.get(task, "chat")


def notes(settings: Settings, tally: Tally) -> list[str]:
    """How the numbers of a tally were estimated, in sentences."""
    tasks = {planned.task for planned in tally.planned.values()}
    said = [f"Method: {settings.method_in_words}."]
    if extraction := [task for task in EXTRACTION_TASKS if task in tasks]:
        rounds = "" if settings.max_gleanings < 2 else "; a text unit without further records has fewer rounds"
        said.append(
            f"Calls of {', '.join(extraction)} are counted from the prompts themselves{rounds}. Later tasks are "
            "estimated from the embedded default's results for the same text units."
        )
    said += _time_note(settings, tally)
    said += _note_on_claims(settings, tally)
    for task in (task for task in RULES if task in tasks):
        measured = tally.answer_tokens.get(task)
        basis = (
            f"{measured:,.0f} tokens, the mean in the ledger" if measured else f"{RULES[task]} tokens, a rule of thumb"
        )
        said.append(f"Answers of {task}: {basis}.")
    said += dict.fromkeys(_price_note(settings, task) for task in _ORDER if task in tasks)
    said += key_notes(
        embedding_model(settings) if task == EMBED else chat_model(settings, use=_use_of(settings, task))
        for task in _ORDER
        if task in tasks
    )
    if settings.embeds_locally:
        said.append(f"{settings.embedding_model} runs on this machine, so its vectors are free.")
    if repeated := sum(planned.repeated_tokens for planned in tally.planned.values()):
        prices = prices_of(settings, PROMPT)
        if saved := repeated * (prices.input_usd - prices.cached_usd):
            said.append(
                f"Gleanings begin with {repeated:,} tokens of the requests before them. Those that the provider finds "
                f"in its prompt cache cost ${prices.cached_usd * 1e6:g} per million, so the table has up to "
                f"${saved:.4f} too much."
            )
    if settings.budget_usd is not None:
        spent = ledger_of(settings).spent_today()
        said.append(f"Budget: ${settings.budget_usd:,.2f}, of which ${spent:,.2f} were spent today.")
    return said


def _time_note(settings: Settings, tally: Tally) -> list[str]:
    """How long the planned calls of chat models take: one task after the other, the calls of each at once."""
    planned = pl.DataFrame(list(tally.planned.values()), _PLANNED, orient="row").filter(pl.col("task") != EMBED)
    if planned.is_empty():
        return []
    rule = _SECONDS_BEFORE_ANSWER + pl.col("completion_tokens") / _TOKENS_PER_SECOND
    measured = pl.col("task").replace_strict(tally.answer_seconds, default=None, return_dtype=pl.Float64)
    seconds = pl.coalesce(measured, rule)
    of_task = pl.max_horizontal(seconds.max(), seconds.sum() / settings.concurrency).alias("seconds")
    estimates = [float(planned.group_by("task").agg(of_task)["seconds"].sum())]
    if settings.requests_per_minute:
        estimates.append(60 * planned.height / settings.requests_per_minute)
    if settings.tokens_per_minute:
        tokens = int((planned["prompt_tokens"] + planned["completion_tokens"]).sum())
        estimates.append(60 * tokens / settings.tokens_per_minute)
    basis = "the mean times in the ledger" if set(planned["task"]) <= set(tally.answer_seconds) else "a rule of thumb"
    return [
        f"Time: about {duration_in_words(max(estimates))} of calls of chat models, {settings.concurrency} at once "
        f"(GRAPHRAG_CONCURRENCY), by {basis}."
    ]


def key_notes(models: Iterable[ChatModel | EmbeddingModel]) -> list[str]:
    """A sentence for each model whose API key is not set."""
    options = [model.options for model in models]
    missing = dict.fromkeys((one.model, name) for one in options if (name := missing_key(one)))
    return [f"{model} has no API key: set {name}, otherwise its requests fail." for model, name in missing]


def _note_on_claims(settings: Settings, tally: Tally) -> list[str]:
    """A note on what claims cost as a part of the extraction, if they do."""
    if tally.without_claims is None:
        return []
    of_extraction = pl.col("task").is_in(EXTRACTION_TASKS)
    sums = pl.col("calls", "prompt_tokens", "completion_tokens", "cost_usd").sum()
    whole, bare = (
        cost_frame(settings, counted).filter(of_extraction).select(sums).row(0)
        for counted in (tally, tally.without_claims)
    )
    calls, prompt, completion, cost = (one - other for one, other in zip(whole, bare, strict=True))
    if prompt <= 0:
        return []
    unknown = prices_of(settings, PROMPT).source == "unknown"
    dollars = "an unknown price" if unknown else f"${cost:,.4f}"
    return [
        f"Claims are part of the requests of extraction: they take {calls:,} calls, {prompt:,} prompt tokens, "
        f"{completion:,} answer tokens and {dollars}. GRAPHRAG_CLAIMS=off leaves them out."
    ]


def _price_note(settings: Settings, task: str) -> str:
    return f"{model_of(settings, task)}: {price_in_words(prices_of(settings, task))}."


def price_in_words(prices: Prices) -> str:
    """Dollars per million tokens, and where they come from; or what to set."""
    if prices.source == "unknown":
        return "no price is known; set GRAPHRAG_USD_PER_MILLION"
    origin = "litellm's table" if prices.source == "litellm" else "the settings"
    return f"${prices.input_usd * 1e6:g} in, ${prices.output_usd * 1e6:g} out per million tokens, by {origin}"
