"""The cost preview: reads and chunks what changed, looks it up in the ledger, and estimates what follows from it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import click
import polars as pl
from rich.table import Table

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import extract_batch, read_batch, stored_facts
from graphrag_assets.assets.model_tasks import indexing_tasks
from graphrag_assets.assets.scan import scan
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.contracts.indexing_models import Extracted
from graphrag_assets.contracts.records import TextUnit
from graphrag_assets.llm.backend import chat_model, embedding_model, ledger_of
from graphrag_assets.llm.event_loop import run_concurrently
from graphrag_assets.llm.model_options import EmbeddingOptions, ModelOptions
from graphrag_assets.llm.prompts import prompt_text
from graphrag_assets.llm.provider import Prices, missing_key, provider_of
from graphrag_assets.llm.task import prompt_tokens
from graphrag_assets.llm.tasks.extract_graph import MIN_TOKENS_GLEANED, PROMPT, WITH_CLAIMS, units_together
from graphrag_assets.llm.tasks.summarize_descriptions import SUMMARY
from graphrag_assets.llm.tasks.write_report import GRAPH_REPORT, TEXT_REPORT
from graphrag_assets.pipeline.batch import units_to_extract
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens

EMBED, CONTINUE = "embed", "_continue"
_CLAIMS = 1.67
"""An answer with claims is so many times as long as one without."""
_CONTINUED, _LISTED = 0.33, 0.45
"""Of the tokens of an answer: those of a gleaning, and those that its prompt lists."""
_DERIVED: dict[str, tuple[float, float, float]] = {
    SUMMARY.name: (0.1, 2500, 250),
    GRAPH_REPORT.name: (2, 2700, 700),
    TEXT_REPORT.name: (2, 3700, 700),
    EMBED: (15, 120, 0),
}
"""Rules of thumb: requests (of `EMBED`, texts) per 1,000 tokens of text, tokens of a prompt and of an answer.

GPT-4.1 made of the 50,000 tokens of A Christmas Carol 529 entities and 98 communities of more than two.
"""
_BETWEEN = {True: (0.6, 1.8), False: (0.4, 2.0)}
"""What estimates may be wrong by: those by the means of the ledger, and those by rules of thumb."""
_MIN_ANSWERS = 5
"""From so many answers of a task in the ledger, their number and mean tokens replace the rules of thumb."""
_SAMPLE = 5
_KINDS = ("entities", "relationships", "claims")
_NOTHING = (
    "Nothing was extracted from these text units, so an index of them would be empty. Use a model that follows the "
    "form of the answers better, allow it more tokens (max_tokens, or num_ctx of Ollama, in "
    "GRAPHRAG_MODEL_PARAMETERS), or set GRAPHRAG_METHOD=fast."
)
_SUMS, _DOLLARS = ("calls", "in_ledger", "prompt_tokens", "completion_tokens"), ("cost_usd", "least_usd", "most_usd")
_SCHEMA = {"task": pl.String, **dict.fromkeys(_SUMS, pl.Int64), **dict.fromkeys(_DOLLARS, pl.Float64)}
_REPORTS = """
WITH reported AS (FROM communities WHERE size > 2),
members AS (
    SELECT DISTINCT x.text_unit_id, community FROM entity_mentions x JOIN entities e USING (title_key)
    JOIN community_members m ON m.entity_id = e.id JOIN reported USING (community)
)
SELECT count(*) AS n, count(*) FILTER (r.model IS DISTINCT FROM $reporter) AS n_outdated,
    (SELECT count(DISTINCT community) FROM members WHERE list_contains($gone::VARCHAR[], text_unit_id)) AS n_of_gone,
    (SELECT count(*) / greatest(count(DISTINCT text_unit_id), 1) FROM members) AS n_per_unit
FROM reported LEFT JOIN community_reports r USING (community)
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


class _Estimate(NamedTuple):
    """Requests of a task that are to be paid for, the tokens of all their prompts and answers, and what is paid."""

    task: str
    calls: float
    prompt_tokens: float
    completion_tokens: float
    n_in_ledger: int = 0


class _Changes(NamedTuple):
    """Text units to extract, the ids of those that are gone, and by how many more there are."""

    units: list[TextUnit]
    gone: set[str]
    n_added: int


Means = dict[str, tuple[int, float, float]]
"""By task the number of answers in the ledger, and their mean tokens of prompt and answer."""


def plan_index(index: Index, sample: bool = False) -> CostPlan:
    """Estimate the cost of indexing the changed batches and of what is derived from them. Nothing is written.

    Nothing is sent either, unless `sample` has the model extract a few text units first, whose answers stay paid for.

    Raises:
        InputError: the input folder cannot be read.
        CircuitOpen, BudgetExceeded, LedgerError: the sample cannot be extracted.
    """
    settings, due, said = index.settings, scan(index).due, list[str]()
    if not settings.calls_models:
        why = f"{settings.embedding_model} runs on this machine" if settings.embeds_locally else "No model is set"
        return CostPlan(due, pl.DataFrame(schema=_SCHEMA), (f"{why}, so nothing is paid for.",))
    if sample and settings.choices.extraction == "model":
        said.append(_extract_sample(index))
    changes, means = [_changes_of(index, batch) for batch in due], _means(settings)
    estimates = list(_estimates(index, changes, means))
    said += [f"Method: {settings.method_in_words}.", *_notes(settings, estimates, means)]
    return CostPlan(due, _costs(settings, estimates, means), tuple(dict.fromkeys(said)))


def _extract_sample(index: Index) -> str:
    """Have text units of the first batches extracted, whose answers the ledger keeps; what they gave, in words."""
    folder, settings, units = index.input, index.settings, list[TextUnit]()
    for batch, files, *_ in folder.list_batches():
        documents, text_units, _ = read_batch(settings, batch, files)
        units += units_to_extract(text_units, documents, settings.metadata_column_list)
        if len(units) >= _SAMPLE:
            break
    spread = [units[place * len(units) // _SAMPLE] for place in range(_SAMPLE)] if len(units) > _SAMPLE else units
    counts, errors = Counter[str](), list[str]()
    for _, extraction in index.models().extract(spread):
        if isinstance(extraction, Exception):
            errors.append(str(extraction))
        else:
            counts.update({kind: len(getattr(extraction, kind)) for kind in _KINDS})
    gave = ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS)
    said = [f"The sample: {len(spread)} text units gave {gave}."]
    said += [f"{len(errors)} failed: {errors[0]}"] if errors else []
    return " ".join([*said, *([] if counts["entities"] or not spread else [_NOTHING])])


def _changes_of(index: Index, batch: str) -> _Changes:
    """Read and chunk a batch, and compare it with what is indexed."""
    units, present = list[TextUnit](), set[str]()

    def collect(new: Iterable[TextUnit]) -> Iterator[Extracted]:
        units.extend(new)
        return iter(())

    if files := index.input.files(batch):
        models = replace(index.models(), extract=collect)
        stored = stored_facts(index, batch, [file.path for file in files], models)
        present = set(extract_batch(index, batch, models, files, stored).frames["text_units"]["id"])
    before = set(index.working.read("SELECT id FROM text_units WHERE batch = $batch", {"batch": batch})["id"])
    return _Changes(units, before - present, max(len(present) - len(before), 0))


def _means(settings: Settings) -> Means:
    """Return the means of the answers by the models of the settings, of tasks with enough of them."""
    models = {settings.embedding_model, settings.model_of("extraction")}
    usable = pl.col("kind").is_in(["chat", "embedding"])
    is_theirs = pl.col("model").is_in([provider_of(model)[1] for model in models])
    answers = ledger_of(settings).frame().filter(usable & is_theirs).group_by("task")
    means = answers.agg(pl.len(), pl.col("prompt_tokens", "completion_tokens").mean())
    return {task: (n, prompt, answer) for task, n, prompt, answer in means.iter_rows() if n >= _MIN_ANSWERS}


def _estimates(index: Index, changes: Sequence[_Changes], means: Means) -> Iterator[_Estimate]:
    """Yield the requests to be paid for: those about text units, and by ratio those that follow from the answers."""
    settings, choices, working = index.settings, index.settings.choices, index.working
    units, gone = [unit for one in changes for unit in one.units], [unit for one in changes for unit in one.gone]
    n_added, n_indexed = sum(one.n_added for one in changes), working.read("SELECT count(*) FROM text_units").item()
    if choices.extraction == "model":
        units, extraction = _extraction(index, units, means)
        yield from extraction
        n_added = min(n_added, len(units))
        n_indexed = means.get(WITH_CLAIMS if choices.claims == "model" else PROMPT, (0,))[0]
    n_new = len(units)
    n_tokens = sum(count_tokens([unit.text for unit in units], settings.tokenizer)) / max(len(units), 1)

    def derived(task: str, n_units: int, due: float = 0) -> _Estimate:
        """Return the requests that follow from text units, as many for each as the ledger has; and those due."""
        per_thousand, prompt, answer = _DERIVED[task]
        calls = per_thousand * n_units * n_tokens / 1000
        if task in means and n_indexed:
            n_answers, prompt, answer = means[task]
            calls = n_answers / n_indexed * n_units
        return _Estimate(task, calls + due, (calls + due) * prompt, (calls + due) * answer)

    if choices.summaries == "model":
        yield derived(SUMMARY.name, n_new)
    values = {"reporter": index.models().reporter, "gone": gone}
    n, n_outdated, n_of_gone, n_per_unit = working.read(_REPORTS, values).row(0)
    # A new text unit concerns n_per_unit of n communities: so many are left alone by all of them.
    left = (n - n_outdated) * (1 - n_of_gone / n) * (1 - n_per_unit / n) ** n_new if n else 0
    due = n - left
    if choices.reports == "model":
        yield derived((TEXT_REPORT if settings.reports_from_text else GRAPH_REPORT).name, n_added, due)
    if settings.embeds_remotely:
        yield derived(EMBED, n_new, due + working.read(_WITHOUT_VECTOR, {"model": settings.embedding_name}).item())


def _extraction(index: Index, units: Sequence[TextUnit], means: Means) -> tuple[list[TextUnit], list[_Estimate]]:
    """Return the text units to be paid for, of equal ones the first; their requests, and those of gleanings."""
    settings, tasks = index.settings, indexing_tasks(index.settings, index.profile, run_id="plan")
    options, chat, task = tasks.extraction, tasks.chat(), WITH_CLAIMS if tasks.extraction.claim_description else PROMPT
    requests = {unit: tasks.first_request(unit, options) for unit in units}
    by_prompt = dict[str, TextUnit]()
    distinct = [
        one for one, request in requests.items() if by_prompt.setdefault(prompt_text(request.messages), one) is one
    ]

    async def is_unpaid(unit: TextUnit) -> bool | None:
        """Whether a request is to be sent; None for one that is given up."""
        stored = await chat.stored_answer(requests[unit])
        return None if not stored and await chat.given_up(requests[unit]) else not stored

    looked_up = dict(run_concurrently(is_unpaid, distinct, "answers in the ledger"))
    unpaid = [unit for unit in distinct if looked_up[unit]]
    n_stored = sum(answer is False for answer in looked_up.values())
    sizes = count_tokens([unit.text for unit in unpaid], settings.tokenizer)
    prompts = [prompt_tokens(requests[unit], settings.tokenizer) for unit in unpaid]
    rules = min((prompt - size for prompt, size in zip(prompts, sizes, strict=True)), default=0)
    n_calls = len(units_together(unpaid, settings.tokenizer))

    def answer_tokens(size: int) -> float:
        """Return the tokens of an answer: by rule, a short text, a letter or a row, has more facts per token."""
        by_rule = min(6.0 * size, 1000 + size / 2) / (1 if task == WITH_CLAIMS else _CLAIMS)
        return means[task][2] if task in means else by_rule

    prompt = sum(prompts) - rules * (len(unpaid) - n_calls)
    first = _Estimate(task, n_calls, prompt, sum(map(answer_tokens, sizes)), n_stored)
    long = [place for place, size in enumerate(sizes) if size > MIN_TOKENS_GLEANED]
    answers = sum(answer_tokens(sizes[place]) for place in long)
    share, continued = float(settings.max_gleanings), _CONTINUED * answers
    if share and task + CONTINUE in means and task in means:
        share = means[task + CONTINUE][0] / means[task][0]
        continued = means[task + CONTINUE][2] * len(long)
    repeated = sum(prompts[place] for place in long) + _LISTED * answers
    more = _Estimate(task + CONTINUE, len(long) * share, repeated * share, continued * share)
    return unpaid, [first, more]


def _costs(settings: Settings, estimates: Sequence[_Estimate], means: Means) -> pl.DataFrame:
    """Return the costs of requests, see `CostPlan`."""
    rows = list[tuple[object, ...]]()
    for task, n, prompt, answer, n_in_ledger in estimates:
        calls = ceil(n / EmbeddingOptions.batch_size if task == EMBED else n)
        if not calls and not n_in_ledger:
            continue
        (_, prices), (least, most) = _priced(settings, task), _BETWEEN[task in means]
        if task.endswith(CONTINUE) and task not in means:
            least = 0.0
        cost = prices.cost(round(prompt), round(answer))
        costs = [None] * 3 if prices.source == "unknown" and calls else [cost, cost * least, cost * most]
        rows.append((task, calls, n_in_ledger, round(prompt), round(answer), *costs))
    return pl.DataFrame(rows, _SCHEMA, orient="row")


def _priced(settings: Settings, task: str) -> tuple[ModelOptions, Prices]:
    """Return the model of a task, and its prices."""
    options = (embedding_model(settings) if task == EMBED else chat_model(settings)).options
    return options, Prices.of(options.model, options.prices)


def _notes(settings: Settings, estimates: Sequence[_Estimate], means: Means) -> list[str]:
    """How the requests were estimated, their prices, and what the settings lack, in sentences."""
    due = [one for one in estimates if one.calls]
    guessed = [one.task for one in due if one.task not in means]
    basis = f"by rules of thumb for {', '.join(guessed)}" if guessed else "by the means in the ledger"
    said = [f"An estimate: numbers and lengths {basis}."] if due else []
    if guessed and settings.choices.extraction == "model":
        said.append(
            f"`plan --sample` has {_SAMPLE} text units extracted, paid for once, and estimates by their answers."
        )
    for task in (one.task for one in due):
        options, prices = _priced(settings, task)
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
    return said


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
    """Return a table of costs by task, with their sums; a cost that is null is unknown, and the sum then a minimum."""
    numbers = ("calls", "in ledger", "prompt tokens", "answer tokens", "US$")
    table = table_of("task", numbers=numbers, title="requests to be paid for, estimated")
    for task, *counts, cost, _, _ in rows.iter_rows():
        table.add_row(task, *(f"{count:,}" for count in counts), _dollars(cost))
    cost = float(rows["cost_usd"].sum())
    all_known = rows["cost_usd"].null_count() == 0
    in_all = _dollars(cost) if all_known else f"≥ {_dollars(cost)}" if cost else _dollars(None)
    table.add_section()
    table.add_row("in all", *(f"{rows[name].sum():,}" for name in _SUMS), in_all)
    return table


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.4f}"
