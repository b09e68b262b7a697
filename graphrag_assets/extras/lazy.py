"""Lazy search: tests text units for relevance within a budget, and answers from the relevant ones.

After "LazyGraphRAG" (Edge et al., Microsoft Research 2024), with numbers that the description leaves out from
Microsoft's intelligence-toolkit (`relevance_assessor.py`): best first by the ranking of text units, then breadth first
over communities, those with relevant units first. It needs no reports and no model's extraction: ranking and
communities of any index do.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field, replace
from functools import partial
from itertools import accumulate

import polars as pl
from pydantic.dataclasses import dataclass

from graphrag_assets.contracts.answering import NO_ANSWER, Passage
from graphrag_assets.embedded import QuestionAnalysis
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import Context, Section, fill, lines_of, packed
from graphrag_assets.query.fetch import entity_rows, sources
from graphrag_assets.query.local import SOURCES
from graphrag_assets.query.options import CommonOptions, Count, PositiveCount
from graphrag_assets.query.passages import rank_passages
from graphrag_assets.query.question import Question
from graphrag_assets.query.respond import answer_of, map_parts, reduce, respond
from graphrag_assets.query.results import Answer
from graphrag_assets.query.retrieval import fuse, rarity_of, search_texts
from graphrag_assets.query.scope import EVERYTHING, Scope
from graphrag_assets.store.publication_reader import Reader
from graphrag_assets.text.words import count_tokens, fold, sentence_lines, sentences

RANKED = 1_000
"""Text units that are ranked; the others come after them, in the order of their numbers."""
_CONCEPTS = 30
_HEADING_TOKENS = 16  # at least
_CONCURRENT_SHARE = 0.1  # of the budget: batches of the ranking that are tested at the same time, at least one
_RANKS_PER_COMMUNITY = 5

Sentences = tuple[int, ...]
"""The relevant sentences of a text unit, from 1; none: it is not relevant."""
Verdicts = dict[int, Sentences | None]
"""The relevant sentences of text units; None where the test failed."""


@dataclass(frozen=True, kw_only=True)
class LazyOptions(CommonOptions):
    """All options of `rag.lazy`.

    Args:
        budget: maximum number of text units that are tested for relevance: the dial between price and completeness.
        subqueries: number of questions that the question is rewritten into, for the ranking; 0: it is not rewritten.
        batch: text units of one request.
        max_empty_communities: after so many communities in a row without a relevant text unit, no more are explored.
        max_context_tokens: maximum number of tokens of relevant text units that one call reads.
        max_reduce_tokens: maximum number of tokens of the points that the answer is written from, the best first.
        max_map_words, max_reduce_words: length of the answers that the model is asked for.
    """

    budget: PositiveCount = 100
    subqueries: Count = 3
    batch: PositiveCount = 8
    max_empty_communities: PositiveCount = 5
    max_context_tokens: PositiveCount = 4_000
    max_reduce_tokens: PositiveCount = 12_000
    max_map_words: PositiveCount = 500
    max_reduce_words: PositiveCount = 1000


@plain_dataclass(frozen=True, slots=True)
class RelevanceTest:
    """One test, and the community that led to the text unit; None if the ranking did."""

    unit: int
    community: int | None
    sentences: Sentences | None


@plain_dataclass
class Exploration:
    """The tests of an exploration, and how it goes on.

    Args:
        budget: maximum number of tests.
        batch: text units of one request.
        max_empty_communities: so many in a row without a relevant unit, and the exploration ends.
        test: gives the verdicts on batches of text units, which are tested at the same time.
        communities: gives communities, best first, each with its untested text units, best first.
    """

    budget: int
    batch: int
    max_empty_communities: int
    test: Callable[[list[list[int]]], Awaitable[Verdicts]]
    communities: Callable[["Exploration"], Awaitable[dict[int, list[int]]]]
    tests: dict[int, RelevanceTest] = field(default_factory=dict)

    @property
    def hits(self) -> list[int]:
        """The relevant text units, in the order in which they were found."""
        return [unit for unit, test in self.tests.items() if test.sentences]

    @property
    def room(self) -> int:
        """Number of text units that may still be tested."""
        return self.budget - len(self.tests)

    async def run(self, ranking: Sequence[int]) -> None:
        """Test until the budget is spent, or nothing more is found. `ranking`: text units, best first."""
        await self._best_first(ranking)
        await self._by_community()

    async def _test(self, units: Mapping[int, int | None]) -> Verdicts:
        """Test text units, given with the community that led to each, and record the verdicts."""
        verdicts = await self.test(in_batches(list(units), self.batch)) if units else {}
        for unit, community in units.items():
            self.tests[unit] = RelevanceTest(unit, community, verdicts.get(unit))
        return verdicts

    async def _best_first(self, ranking: Iterable[int]) -> None:
        """Test the ranking, more batches at the same time as long as each of them holds something."""
        width, widest = 1, max(int(self.budget * _CONCURRENT_SHARE / self.batch), 1)
        while self.room > 0:
            untested = [unit for unit in ranking if unit not in self.tests]
            units = untested[: min(width * self.batch, self.room)]
            verdicts = await self._test(dict.fromkeys(units))
            if not units or not all(any(map(verdicts.get, batch)) for batch in in_batches(units, self.batch)):
                return
            width = min(2 * width, widest)

    async def _by_community(self) -> None:
        """Test half a batch of each of the first communities at a time, and again as long as that finds something."""
        n_hits, share = -1, max(self.batch // 2, 1)
        while self.room > 0 and len(self.hits) > n_hits:
            n_hits, n_empty = len(self.hits), 0
            untested = await self.communities(self)
            while untested and n_empty < self.max_empty_communities and self.room > 0:
                first = list(untested)[: self.max_empty_communities]
                pairs = [(unit, community) for community in first for unit in untested[community][:share]]
                units = dict(pairs[: self.room])
                verdicts = await self._test(units)
                for community in dict.fromkeys(units.values()):
                    is_relevant = any(verdicts.get(unit) for unit in units if units[unit] == community)
                    n_empty = 0 if is_relevant else n_empty + 1
                    untested[community] = untested[community][share:]
                    if not is_relevant or not untested[community]:
                        del untested[community]


async def build_context(ask: Ask[LazyOptions]) -> Context:
    """Return the relevant text units, in groups of communities, each within the token limit."""
    return (await _tested(ask))[0]


async def _tested(ask: Ask[LazyOptions]) -> tuple[Context, pl.DataFrame]:
    """Return the context, and the relevance tests that found it; see `Answer.tests`."""
    ranking = await _ranking(ask, await _sub_questions(ask))
    exploration = await _explore(ask, ranking)
    ask.trace.notes.append(f"{len(exploration.tests)} text units tested, {len(exploration.hits)} relevant")

    def results() -> tuple[list[Section], pl.DataFrame]:
        return _groups(ask, exploration), tests_frame(ask.reader, exploration.tests.values())

    sections, tests = await ask.in_thread(results)
    return ask.add_context(Context("lazy", ask.text, tuple(sections))), tests


async def answer(ask: Ask[LazyOptions]) -> Answer:
    """Return an answer from the text units that a budget of relevance tests finds; `Answer.tests` has the verdicts."""
    context, tests = await _tested(ask)
    groups = [section for section in context.sections if section.passages]
    if groups:
        points = await map_parts(ask, groups, "the relevant text units")
        answered = await reduce(ask, points, ask.options.max_reduce_tokens, context.sections)
    else:
        answered = await _nothing_found(ask, context, tests)
    return replace(answered, tests=tests)


async def _nothing_found(ask: Ask[LazyOptions], context: Context, tests: pl.DataFrame) -> Answer:
    """Return the answer that there is none; by an answerer without a model, the passages that come closest."""
    tested = tests.drop_nulls("relevant")["human_readable_id"].to_list()
    if ask.models.answerer.min_direct_score is None:
        text = f"{NO_ANSWER} None of the {len(tested)} text units that were tested is relevant."
        ask.show(text)
        return await answer_of(ask, text, context.sections, {})

    def closest() -> Section:
        texts = sources(ask.reader, tested, ask.scope)
        return fill(SOURCES.with_dates(ask.reader), texts, ask.options.max_context_tokens)

    return await respond(ask, replace(context, sections=(await ask.in_thread(closest),)))


async def _sub_questions(ask: Ask[LazyOptions]) -> Sequence[str]:
    """Return the questions that the question consists of, in the words of the index."""
    await ask.embed(ask.question)
    if not ask.options.subqueries:
        return ()
    concepts = await ask.in_thread(_concepts, ask)
    call = ask.models.answerer.arewrite(ask.text, concepts, ask.options.subqueries, ask.form)
    rewritten = await ask.optional("rewrite", "the questions that the question consists of", call)
    return rewritten.questions if rewritten else ()


def _concepts(ask: Ask[LazyOptions]) -> list[str]:
    """Titles of the entities that match the question best."""
    numbers = search_texts(ask.reader, "entity", ask.question, _CONCEPTS, ask.scope)
    return entity_rows(ask.reader, numbers, ask.scope)["title"].to_list()


async def _ranking(ask: Ask[LazyOptions], sub_questions: Sequence[str]) -> list[int]:
    """Text units by the fused rankings of the question and of the questions that it consists of."""
    questions = [ask.question, *map(Question, sub_questions)]
    if sub_questions:
        await ask.embed(*questions[1:])

    def rankings() -> list[list[int]]:
        return [rank_passages(ask.reader, question, RANKED, ask.scope).numbers for question in questions]

    first, *others = await ask.in_thread(rankings)
    return fuse(first, *others)[:RANKED] if others else first


async def _explore(ask: Ask[LazyOptions], ranking: Sequence[int]) -> Exploration:
    options, reader, scope = ask.options, ask.reader, ask.scope
    rarity = await ask.in_thread(_rarity, reader, ask.text)

    def communities(exploration: Exploration) -> Awaitable[dict[int, list[int]]]:
        return ask.in_thread(communities_to_test, reader, ranking, exploration, scope)

    test = partial(_verdicts, ask, ask.text, rarity)
    exploration = Exploration(options.budget, options.batch, options.max_empty_communities, test, communities)
    await exploration.run(ranking)
    return exploration


async def _verdicts(
    ask: Ask[LazyOptions], question: str, rarity: Mapping[str, float], batches: Sequence[Sequence[int]]
) -> Verdicts:
    """Return the verdicts on batches of text units.

    Raises:
        Exception: the first error, if no test of the search has succeeded.
    """
    units = [unit for batch in batches for unit in batch]
    texts = await ask.in_thread(sources, ask.reader, units, ask.scope)
    title = pl.concat_str(pl.col("document_date").cast(pl.String), "context", separator=" ", ignore_nulls=True)
    sent = [Passage("Sources", *row) for row in texts.select("human_readable_id", title, "text").iter_rows()]
    passages = {passage.number: passage for passage in sent}
    calls = [
        (
            f"the test of {len(batch)} text units",
            ask.counted("test", ask.models.rater.atest(question, [passages[u] for u in batch], rarity)),
        )
        for batch in batches
    ]
    answers = await ask.gather("test", calls, all_may_fail="test" in ask.trace.usage)
    verdicts: Verdicts = {}
    for batch, answer in zip(batches, answers, strict=True):
        if isinstance(answer, Exception):
            verdicts |= dict.fromkeys(batch)
        else:
            verdicts |= {unit: answer.sentences.get(unit, ()) for unit in batch}
    return verdicts


def _rarity(reader: Reader, question: str) -> dict[str, float]:
    """Return the rarity in the index of the question's terms that occur in it."""
    folded = {term: fold(term) for term in QuestionAnalysis.of(question).terms}
    rarity = rarity_of(reader, folded.values())
    return {term: rarity[written] for term, written in folded.items() if written in rarity}


def _groups(ask: Ask[LazyOptions], exploration: Exploration) -> list[Section]:
    """Return the relevant text units in sections within the token limit: those of a document adjoin."""
    layout, limit = SOURCES.with_dates(ask.reader), ask.options.max_context_tokens
    rows = sources(ask.reader, exploration.hits, ask.scope)
    first = pl.int_range(pl.len()).min().over("document_id")
    rows = rows.sort(first, "start_char", "human_readable_id")
    written = dict(rows.select("human_readable_id", "text").iter_rows())
    # Each sentence after the number by which it can be cited.
    numbered = {
        unit: [f"({unit}.{place}) {line}" for place, line in enumerate(sentence_lines(text), 1)]
        for unit, text in written.items()
    }
    numbered_rows = rows.with_columns(text=pl.Series([" ".join(lines) for lines in numbered.values()], dtype=pl.String))
    tokens = count_tokens(lines_of(layout, numbered_rows))
    numbered_rows = numbered_rows.with_columns(line_tokens=pl.Series(tokens, dtype=pl.Int64))
    parts = packed(tokens, limit - _HEADING_TOKENS)
    return [_as_written(fill(layout, numbered_rows[part], limit), written, numbered) for part in parts]


def _as_written(section: Section, written: Mapping[int, str], numbered: Mapping[int, Sequence[str]]) -> Section:
    """Return the section with the text units as `written`, each with the numbers of the sentences that the section
    shows.
    """
    passages = []
    for passage in section.passages:
        text, lines = written[passage.number], numbered[passage.number]
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))[:-1]
        n_shown = sum(start < len(passage.text) for start in starts)
        if n_shown < len(lines):
            text = text[: sentences(text)[n_shown - 1].end]
        passages.append(replace(passage, text=text, sentences=tuple(range(1, n_shown + 1))))
    texts = [written[number] for number in section.frame["human_readable_id"]]
    frame = section.frame.with_columns(text=pl.Series(texts, dtype=pl.String))
    return replace(section, passages=tuple(passages), frame=frame)


def in_batches(units: Sequence[int], size: int) -> list[list[int]]:
    """Return the units in batches of `size`, the last one shorter."""
    return [list(units[start : start + size]) for start in range(0, len(units), size)]


def communities_to_test(
    reader: Reader, ranking: Sequence[int], exploration: Exploration, scope: Scope = EVERYTHING
) -> dict[int, list[int]]:
    """Return the smallest communities, best first, each with its untested text units, best first.

    The best communities have most relevant units so far, then the best mean rank of their five best text units. A text
    unit counts in its best community alone.
    """
    rows = reader.rows(
        f"""
        WITH ranks AS (SELECT unnest($units::INT[]) AS text_unit, unnest($ranks::INT[]) AS rank),
        members AS (
            SELECT DISTINCT community, t.text_unit, coalesce(rank, $unranked) AS rank,
                   list_contains($hits::INT[], t.text_unit) AS hit
            FROM search.entity_communities JOIN search.entity_text_units t USING (entity)
            LEFT JOIN ranks USING (text_unit)
            WHERE level = (SELECT max(level) FROM search.entity_communities)
              AND {scope.allows("text_unit", "t.text_unit")}
        ), placed AS (
            SELECT *, row_number() OVER (PARTITION BY community ORDER BY rank, text_unit) AS place FROM members
        ), communities AS (
            SELECT community, count_if(hit) AS hits, avg(rank) FILTER (place <= {_RANKS_PER_COMMUNITY}) AS mean
            FROM placed GROUP BY community
        )
        SELECT community, text_unit FROM members JOIN communities USING (community)
        WHERE NOT list_contains($tested::INT[], text_unit)
        QUALIFY row_number() OVER (PARTITION BY text_unit ORDER BY hits DESC, mean, community) = 1
        ORDER BY hits DESC, mean, community, rank, text_unit
        """,
        {
            "units": list(ranking),
            "ranks": list(range(len(ranking))),
            "unranked": len(ranking),
            "hits": exploration.hits,
            "tested": list(exploration.tests),
        },
    )
    return dict(rows.group_by("community", maintain_order=True).agg("text_unit").iter_rows())


def tests_frame(reader: Reader, tests: Collection[RelevanceTest]) -> pl.DataFrame:
    """The tests in their order: order, human_readable_id, id, community, relevant (null: failed), sentences."""
    relevant = [None if one.sentences is None else bool(one.sentences) for one in tests]
    frame = pl.DataFrame(
        {
            "order": pl.Series(range(1, len(tests) + 1), dtype=pl.Int64),
            "human_readable_id": pl.Series([one.unit for one in tests], dtype=pl.Int64),
            "community": pl.Series([one.community for one in tests], dtype=pl.Int64),
            "relevant": pl.Series(relevant, dtype=pl.Boolean),
            "sentences": pl.Series([list(one.sentences or ()) for one in tests], dtype=pl.List(pl.Int64)),
        }
    )
    ids = reader.rows(
        "SELECT human_readable_id, id FROM text_units WHERE human_readable_id IN (SELECT unnest($units::INT[]))",
        {"units": frame["human_readable_id"].to_list()},
    )
    frame = frame.join(ids, on="human_readable_id", how="left", maintain_order="left")
    return frame.select("order", "human_readable_id", "id", "community", "relevant", "sentences")
