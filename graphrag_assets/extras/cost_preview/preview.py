"""The cost preview: reads and chunks what changed, counts the requests about it, and estimates those that follow."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import NamedTuple

import click
import polars as pl
from rich.table import Table

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import extract_batch, read_batch, stored_facts
from graphrag_assets.assets.model_tasks import IndexingTasks, with_tasks
from graphrag_assets.assets.scan import scan
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.contracts.indexing_models import Extracted, IndexingModels
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.embedded import embedded_models, extract_unit
from graphrag_assets.llm.ask_model import ChatModel
from graphrag_assets.llm.backend import chat_model, embedding_model, ledger_of
from graphrag_assets.llm.embedding_client import EmbeddingModel
from graphrag_assets.llm.model_errors import GivenUp
from graphrag_assets.llm.model_options import ChatRequest, Completion, EmbeddingOptions
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.provider import Prices, missing_key, provider_of
from graphrag_assets.llm.task import prompt_tokens
from graphrag_assets.llm.tasks.extract_graph import MIN_TOKENS_GLEANED, MORE, PROMPT, WITH_CLAIMS
from graphrag_assets.llm.tasks.summarize_descriptions import SUMMARY
from graphrag_assets.llm.tasks.write_report import GRAPH_REPORT, TEXT_REPORT
from graphrag_assets.pipeline.batch import units_to_extract
from graphrag_assets.runtime.progress import duration_in_words
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens, title_key

EMBED = "embed"
_ANSWERS = {
    # A knowledge graph in JSON is about as long as its text, its claims two thirds of that, a gleaning a third of both.
    PROMPT: (0.9, 40),
    MORE: (0.3, 20),
    WITH_CLAIMS: (1.5, 40),
    f"{WITH_CLAIMS}_continue": (0.5, 20),
}
"""Rules of thumb: tokens of an answer per token of prose, and in addition."""
_DENSE = 4
"""Letters, minutes and rows of tables have so many times the facts of prose."""
_DENSE_TOKENS = 600
"""A text unit of at most so many tokens is dense, and one of list items and rows."""
_ITEM = re.compile(r"\s*(?:[-*•|]|\d+[.)]\s|[^:]{1,40}: )")
_LISTED = 0.45
"""Of the tokens of an answer: what the prompt of a gleaning lists of it."""
_BETWEEN = {True: (0.7, 1.6), False: (0.5, 1.8)}
"""What estimates may be wrong by: those by the means of the ledger, and those by rules of thumb."""
_SAMPLE = 5
_KINDS = ("entities", "relationships", "claims")
_NOTHING = (
    "Nothing was extracted from these text units, so an index of them would be empty. Use a model that follows the "
    "form of the answers better, allow it more tokens (max_tokens, or num_ctx of Ollama, in "
    "GRAPHRAG_MODEL_PARAMETERS), or set GRAPHRAG_METHOD=fast."
)
_DERIVED: dict[str, tuple[float, float, float]] = {
    SUMMARY.name: (0.1, 2500, 250),
    GRAPH_REPORT.name: (2.0, 2700, 700),
    TEXT_REPORT.name: (2.0, 3700, 700),
    EMBED: (15.0, 120, 0),
}
"""Rules of thumb: requests (of `EMBED`, texts) per 1,000 tokens of text, tokens of a prompt and of an answer.

GPT-4.1 made of the 50,000 tokens of A Christmas Carol 529 entities and 98 communities of more than two.
"""
_MIN_ANSWERS = 5
"""From so many answers of a task in the ledger, their number and mean tokens replace the rules of thumb."""
_SECONDS_BEFORE_ANSWER, _TOKENS_PER_SECOND = 1.0, 50.0
_SUMS = ("calls", "in_ledger", "prompt_tokens", "completion_tokens")
_DOLLARS = ("cost_usd", "least_usd", "most_usd")
_SCHEMA = {"task": pl.String, **dict.fromkeys(_SUMS, pl.Int64), **dict.fromkeys(_DOLLARS, pl.Float64)}
_NAMES_GONE = """
SELECT DISTINCT title_key FROM entity_mentions
WHERE batch = $batch AND text_unit_id NOT IN (SELECT unnest($units::VARCHAR[]))
"""
_REPORTS_DUE = """
SELECT count(*) FROM communities c LEFT JOIN community_reports r USING (community)
WHERE c.size > 2 AND (r.model IS DISTINCT FROM $reporter OR community IN (
    SELECT community FROM community_members m JOIN entities e ON e.id = m.entity_id
    WHERE e.title_key IN (SELECT unnest($names::VARCHAR[]))))
"""
_WITHOUT_VECTOR = """
SELECT count(*) FROM text_units t
WHERE NOT EXISTS (FROM embeddings e WHERE e.kind = 'text_unit' AND e.id = t.id AND e.model = $model)
"""


@dataclass(frozen=True)
class CostPlan:
    """The cost of the next `index`.

    Attributes:
        batches: batches to index.
        costs: a row per task: calls (to be paid), in_ledger (paid for), prompt_tokens, completion_tokens, cost_usd
            (null: no price is known), least_usd, most_usd.
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


class _Requests(NamedTuple):
    """Requests of a task that are to be paid for, and the tokens of all their prompts and answers."""

    task: str
    calls: float
    prompt_tokens: float
    completion_tokens: float


Means = dict[str, tuple[int, float, float]]
"""By task the number of answers in the ledger, and their mean tokens of prompt and answer."""


@dataclass
class _Changes:
    """What changed: text units to extract, and keys of the names in new and removed text.

    `meter` counts the requests about it that the ledger has answers to; `unpaid` has the others: by the ledger's key
    their task, the tokens of their prompt, and the ids of their text units.
    """

    units: list[TextUnit] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    meter: UsageMeter = field(default_factory=UsageMeter)
    unpaid: dict[str, tuple[str, int, list[str | None]]] = field(default_factory=dict)


class _NotPaidError(Exception):
    """The answer is not in the ledger, and nothing is sent."""


@dataclass(frozen=True)
class _LedgerOnly:
    """A chat model that answers from the ledger alone, and counts what it would be paid for otherwise."""

    model: ChatModel
    changes: _Changes
    encoding: str

    async def known(self, request: ChatRequest) -> Completion | None:
        return await self.model.known(request)

    async def given_up(self, request: ChatRequest) -> GivenUp | None:
        return await self.model.given_up(request)

    async def complete(self, request: ChatRequest) -> Completion:
        if stored := await self.known(request):
            self.changes.meter.add(request.task, Usage(ledger_hits=1))
            return stored
        if reason := await self.given_up(request):
            raise reason
        tokens, units = prompt_tokens(request, self.encoding), [one.unit for one in request.parts or [request]]
        self.changes.unpaid[self.model.key(request)] = request.task, tokens, units
        raise _NotPaidError(request.name)


def plan_index(index: Index, sample: bool = False) -> CostPlan:
    """Estimate the cost of indexing the changed batches and of what is derived from them. Nothing is written.

    Nothing is sent either, unless `sample` has the model extract a few text units first, whose answers stay paid for.

    Raises:
        InputError: the input folder cannot be read.
        CircuitOpen, BudgetExceeded, LedgerError: the sample cannot be extracted.
    """
    said = list[str]()
    if sample and index.settings.choices.extraction == "model":
        said.append(_extract_sample(index))
    settings, due, changes = index.settings, scan(index).due, _Changes()
    if not settings.calls_models:
        why = f"{settings.embedding_model} runs on this machine" if settings.embeds_locally else "No model is set"
        return CostPlan(
            due, _cost_frame(settings, (), changes.meter, _means(settings)), (f"{why}, so nothing is paid for.",)
        )
    for batch in due:
        _read(index, batch, changes)
    means = _means(settings)
    requests = list(_requests(index, changes, means))
    said += [f"Method: {settings.method_in_words}.", *_notes(settings, requests, means)]
    return CostPlan(due, _cost_frame(settings, requests, changes.meter, means), tuple(said))


def _extract_sample(index: Index) -> str:
    """Have text units of the first batches extracted, whose answers the ledger keeps; what they gave, in words."""
    folder, settings, units = index.input, index.settings, list[TextUnit]()
    for batch, files, *_ in folder.list_batches():
        documents, text_units, _ = read_batch(settings, batch, files)
        units += units_to_extract(text_units, documents, settings.metadata_column_list)
        if len(units) >= _SAMPLE:
            break
    spread = [units[place * len(units) // _SAMPLE] for place in range(_SAMPLE)] if len(units) > _SAMPLE else units
    counts, errors, models = Counter[str](), list[str](), index.models()
    for unit in spread:
        ((_, extraction),) = models.extract([unit])
        if isinstance(extraction, Exception):
            errors.append(str(extraction))
        else:
            counts.update({kind: len(getattr(extraction, kind)) for kind in _KINDS})
    gave = ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS)
    said = [f"The sample: {len(spread)} text units gave {gave}."]
    said += [f"{len(errors)} failed: {errors[0]}"] if errors else []
    return " ".join([*said, *([] if counts["entities"] or not spread else [_NOTHING])])


def _read(index: Index, batch: str, changes: _Changes) -> None:
    """Read and chunk a batch, and count the requests about its text units."""
    units, n_before = list[str](), len(changes.units)
    if files := index.input.files(batch):
        models = _counting_models(index, batch, changes)
        stored = stored_facts(index, batch, [file.path for file in files], models)
        units = extract_batch(index, batch, models, files, stored).frames["text_units"]["id"].to_list()
    changes.names.update(index.working.read(_NAMES_GONE, {"batch": batch, "units": units})["title_key"])
    if index.working.read("SELECT count(*) FROM communities").item():
        for unit in changes.units[n_before:]:
            extraction = extract_unit(unit.text, language=unit.language)
            changes.names.update(title_key(entity.title) for entity in extraction.entities)


def _counting_models(index: Index, batch: str, changes: _Changes) -> IndexingModels:
    """Return the models of the settings, which answer from the ledger alone."""
    settings, models = index.settings, embedded_models(index.settings)

    if settings.asks_chat_model:
        chat = _LedgerOnly(chat_model(settings), changes, settings.tokenizer)
        tasks = IndexingTasks(settings, prompts_of(settings, index.profile), lambda: chat, batch, run_id="plan")
        models = with_tasks(models, tasks)

    def extract(units: Iterable[TextUnit]) -> Iterator[Extracted]:
        new = list(units)
        changes.units += new
        return models.extract(new) if settings.choices.extraction == "model" else iter(())

    return replace(models, extract=extract)


def _means(settings: Settings) -> Means:
    """Return the means of the answers by the models of the settings, of tasks with enough of them."""
    models = {settings.embedding_model, settings.model_of("extraction")}
    usable = pl.col("kind").is_in(["chat", "embedding"])
    is_theirs = pl.col("model").is_in([provider_of(model)[1] for model in models])
    answers = ledger_of(settings).frame().filter(usable & is_theirs).group_by("task")
    means = answers.agg(pl.len(), pl.col("prompt_tokens", "completion_tokens").mean())
    return {task: (n, prompt, answer) for task, n, prompt, answer in means.iter_rows() if n >= _MIN_ANSWERS}


def _answer_tokens(means: Means, task: str, units: Iterable[float]) -> float:
    """Tokens of the answers about text units, given by their tokens, those of a dense one weighted."""
    per_token, constant = _ANSWERS[task]
    return sum(means[task][2] if task in means else per_token * tokens + constant for tokens in units)


def _requests(index: Index, changes: _Changes, means: Means) -> Iterator[_Requests]:
    """Yield the requests to be paid for: those that were counted, and those that follow from their answers."""
    settings, choices, working = index.settings, index.settings.choices, index.working
    n_indexed = int(working.read("SELECT count(*) FROM text_units").item())
    lengths = count_tokens([unit.text for unit in changes.units], settings.tokenizer)
    plain = dict(zip((unit.id for unit in changes.units), lengths, strict=True))
    dense = {
        unit.id: plain[unit.id] * (_DENSE if _is_dense(unit.text, plain[unit.id]) else 1) for unit in changes.units
    }
    n_units, per_unit = len(plain), sum(dense.values()) / max(len(plain), 1)
    first = WITH_CLAIMS if choices.claims == "model" else PROMPT
    prompts = defaultdict[str, list[tuple[float, list[str | None]]]](list)
    for task, length, units in changes.unpaid.values():
        prompts[task].append((length, units))
    for task, requests in prompts.items():
        about = [dense.get(unit or "", per_unit) for _, units in requests for unit in units]
        prompt = sum((length for length, _ in requests), 0.0)
        yield _Requests(task, len(requests), prompt, _answer_tokens(means, task, about))
    if choices.extraction == "model":
        extracted = [unit or "" for _, units in prompts[first] for unit in units]
        long = [unit for unit in extracted if plain.get(unit, per_unit) > MIN_TOKENS_GLEANED] * settings.max_gleanings
        more, n_units = f"{first}_continue", len(extracted)
        n_indexed = means[first][0] if first in means else 0
        share = means[more][0] / n_indexed if more in means and n_indexed else 1
        sizes = [dense.get(unit, per_unit) for unit in long]
        repeated = sum(length for length, units in prompts[first] if {*units} & {*long})
        prompt = repeated + _LISTED * _answer_tokens(means, first, sizes)
        yield _Requests(more, len(long) * share, prompt * share, _answer_tokens(means, more, sizes) * share)

    def derived(task: str, due: int = 0) -> _Requests:
        """Return the requests that follow from the text units, as many for each as the ledger has; and those that are
        due.
        """
        per_thousand, prompt, answer = _DERIVED[task]
        calls = per_thousand * n_units * per_unit / 1000
        if task in means and n_indexed:
            n_answers, prompt, answer = means[task]
            calls = n_answers / n_indexed * n_units
        return _Requests(task, calls + due, (calls + due) * prompt, (calls + due) * answer)

    if choices.summaries == "model":
        yield derived(SUMMARY.name)
    due = working.read(_REPORTS_DUE, {"reporter": index.models().reporter, "names": list(changes.names)}).item()
    if choices.reports == "model":
        yield derived((TEXT_REPORT if settings.reports_from_text else GRAPH_REPORT).name, due)
    if settings.embeds_remotely:
        yield derived(EMBED, due + working.read(_WITHOUT_VECTOR, {"model": settings.embedding_name}).item())


def _is_dense(text: str, n_tokens: int) -> bool:
    """Whether a text unit has many facts for its length."""
    lines = [line for line in text.splitlines() if line.strip()]
    return n_tokens <= _DENSE_TOKENS or 2 * sum(bool(_ITEM.match(line)) for line in lines) > len(lines)


def _cost_frame(settings: Settings, requests: Iterable[_Requests], meter: UsageMeter, means: Means) -> pl.DataFrame:
    """Return the costs of requests, see `CostPlan`; `meter` has counted those that are paid for."""
    rows: dict[str, tuple[int | float | None, ...]] = {
        task: (0, used.ledger_hits, 0, 0, 0.0, 0.0, 0.0) for task, used in meter.by_task.items() if used.ledger_hits
    }
    for task, n, prompt, answer in requests:
        if calls := ceil(n / EmbeddingOptions.batch_size if task == EMBED else n):
            prices, (least, most) = _prices(settings, task), _BETWEEN[task in means]
            if task.endswith("_continue") and task not in means:
                least = 0.0
            cost = prices.cost(round(prompt), round(answer))
            costs = [None] * 3 if prices.source == "unknown" else [cost, cost * least, cost * most]
            rows[task] = calls, rows.get(task, (0, 0))[1], round(prompt), round(answer), *costs
    ordered = [(task, *rows[task]) for task in (*_ANSWERS, *_DERIVED) if task in rows]
    return pl.DataFrame(ordered, _SCHEMA, orient="row")


def _client(settings: Settings, task: str) -> ChatModel | EmbeddingModel:
    """Return the client of the model that performs `task`."""
    return embedding_model(settings) if task == EMBED else chat_model(settings)


def _prices(settings: Settings, task: str) -> Prices:
    options = _client(settings, task).options
    return Prices.of(options.model, options.prices)


def _notes(settings: Settings, requests: Sequence[_Requests], means: Means) -> list[str]:
    """How the requests were estimated, their time and prices, and what the settings lack, in sentences."""
    due = [one for one in requests if one.calls]
    guessed = [one.task for one in due if one.task not in means]
    basis = f"by rules of thumb for {', '.join(guessed)}" if guessed else "by the means in the ledger"
    said = [f"An estimate: numbers and lengths {basis}."] if due else []
    if guessed and settings.choices.extraction == "model":
        said.append(
            f"`plan --sample` has {_SAMPLE} text units extracted, paid for once, and estimates by their answers."
        )
    chats = [one for one in due if one.task != EMBED]
    if chats:
        at_once = settings.concurrency
        seconds = sum(
            max(1, one.calls / at_once)
            * (_SECONDS_BEFORE_ANSWER + one.completion_tokens / one.calls / _TOKENS_PER_SECOND)
            for one in chats
        )
        if settings.requests_per_minute:
            seconds = max(seconds, 60 * sum(one.calls for one in chats) / settings.requests_per_minute)
        said.append(f"Time: about {duration_in_words(seconds)} with {at_once} requests at once (GRAPHRAG_CONCURRENCY).")
    for task in (one.task for one in due):
        prices, options = _prices(settings, task), _client(settings, task).options
        origin = "litellm's table" if prices.source == "litellm" else "the settings"
        price = f"${prices.input_usd * 1e6:g} in, ${prices.output_usd * 1e6:g} out per million tokens, by {origin}"
        unknown = "no price is known; set GRAPHRAG_USD_PER_MILLION"
        said.append(f"{options.model}: {unknown if prices.source == 'unknown' else price}.")
        if name := missing_key(options):
            said.append(f"{options.model} has no API key: set {name}, otherwise its requests fail.")
    if settings.embeds_locally:
        said.append(f"{settings.embedding_model} runs on this machine, so its vectors are free.")
    if settings.budget_usd is not None:
        spent = ledger_of(settings).spent_today()
        said.append(f"Budget: ${settings.budget_usd:,.2f}, of which ${spent:,.2f} were spent today.")
    return list(dict.fromkeys(said))


@click.command()
@click.option("--sample", is_flag=True, help="Have five text units extracted first, paid for once, to estimate by.")
def plan(sample: bool) -> None:
    """Estimate the cost of the next `index`: calls, tokens and dollars of the requests that are not in the ledger."""
    console = Console()
    with console.status("Reading the changed batches"):
        planned = plan_index(Index.from_environment(), sample)
    names = f" ({', '.join(planned.batches)})" if planned.batches else ""
    console.say(f"Batches to index: {len(planned.batches)}{names}")
    print_table(console, cost_table(planned.costs))
    if planned.cost_usd:
        least, most = planned.costs.select(pl.col("least_usd", "most_usd").sum()).row(0)
        console.say(f"Between ${_dollars(least)} and ${_dollars(most)}.")
    for note in planned.notes:
        console.say(note)


def cost_table(rows: pl.DataFrame) -> Table:
    """Return a table of costs by task, with their sums; a cost that is null is unknown, and the sum is then a
    minimum.
    """
    numbers = ("calls", "in ledger", "prompt tokens", "answer tokens", "US$")
    table = table_of("task", numbers=numbers, title="requests to be paid for, estimated")
    columns = ["calls", "in_ledger", "prompt_tokens", "completion_tokens", "cost_usd"]
    for task, calls, in_ledger, prompt, completion, cost in rows.select("task", *columns).iter_rows():
        table.add_row(task, f"{calls:,}", f"{in_ledger:,}", f"{prompt:,}", f"{completion:,}", _dollars(cost))
    calls, in_ledger, prompt, completion = (rows[name].sum() for name in columns[:-1])
    cost = float(rows["cost_usd"].sum())
    all_known = rows["cost_usd"].null_count() == 0
    in_all = _dollars(cost) if all_known else f"≥ {_dollars(cost)}" if cost else _dollars(None)
    table.add_section()
    table.add_row("in all", f"{calls:,}", f"{in_ledger:,}", f"{prompt:,}", f"{completion:,}", in_all)
    return table


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.4f}"
