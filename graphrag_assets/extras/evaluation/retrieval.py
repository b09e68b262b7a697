"""Measures retrieval: what each search method, and the rankings it is made of, find of the gold passages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphrag_assets.errors import QueryError
from graphrag_assets.extras.evaluation.evaluators.recall import ranks, recall
from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.query import query_models
from graphrag_assets.query.basic import BasicOptions, basic_context
from graphrag_assets.query.context import Context
from graphrag_assets.query.local import LocalSearchOptions, local_context
from graphrag_assets.query.passages import RankedPassages, rank_passages
from graphrag_assets.query.query_models import default_options
from graphrag_assets.query.retrieval import Question
from graphrag_assets.query.search import MethodName
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import Reader

BASELINES = ("BM25", "vectors", "fusion")
"""Rankings that every table has beside the methods; without an embedding model BM25 alone. There is also `graph`, by
which local search ranks passages."""
METHODS: tuple[MethodName, ...] = ("local", "basic")
_CANDIDATES = 100
_READ = 10  # passages of a ranking that count as its context

FindContext = Callable[[Any, str], Context]
"""The context of a method for a question, such as `GraphRAG.context`."""
Embed = Callable[[Sequence[str]], Any]
"""A function that embeds questions as the index was embedded."""


class Score(NamedTuple):
    """One number: of a question by a method; for tokens and passages counts, for all others 0 to 1."""

    question: str
    method: str
    metric: str
    value: float


class Found(NamedTuple):
    """What a method found: text units, best first, and the tokens of its context (None: of the first ten)."""

    ranking: list[int]
    tokens: int | None = None


def measure(
    reader: Reader,
    placed: Sequence[Placed],
    settings: Settings,
    methods: Sequence[str] = METHODS,
    find: FindContext | None = None,
    baselines: Sequence[str] = BASELINES,
    embed: Embed | None = None,
) -> list[Score]:
    """The scores of answerable questions by each method and baseline.

    Args:
        settings: the options of searches, and the model of questions.
        methods: local and basic need no model but that of the index's vectors; others are found by `find`.
        embed: embeds questions in place of the model of the settings.

    Raises:
        QueryError: questions cannot be embedded as the index was.
    """
    lengths = dict(reader.frame("SELECT human_readable_id, line_tokens FROM text_units").iter_rows())
    scores: list[Score] = []
    answerable = [each for each in placed if each.units]
    questions = _embedded(reader, [each.question.text for each in answerable], settings, embed)
    for each, question in zip(answerable, questions, strict=True):
        for method, found in _found(reader, question, default_options(settings), methods, baselines, find):
            scores += _scores(each, method, found, lengths)
    return scores


def _embedded(reader: Reader, texts: Sequence[str], settings: Settings, embed: Embed | None) -> list[Question]:
    """The questions with their vectors, by one request where a provider makes them."""
    questions = [Question(text) for text in texts]
    if reader.embedding and questions:
        model, _ = reader.embedding
        vectors = (embed or query_models.embedder(settings, model))(texts)
        for question, vector in zip(questions, vectors, strict=True):
            question.remember(model, np.asarray(vector, np.float32))
    return questions


def _scores(each: Placed, method: str, found: Found, lengths: Mapping[int, int]) -> Iterator[Score]:
    reached = ranks(found.ranking, each.units)
    read = found.ranking if found.tokens is not None else found.ranking[:_READ]
    tokens = sum(lengths.get(unit) or 0 for unit in read) if found.tokens is None else found.tokens
    passages = sum(rank is not None and rank <= len(read) for rank in reached)
    for metric, value in {**recall(reached), "tokens": tokens, "passages": passages}.items():
        yield Score(each.question.id, method, metric, float(value))


def _found(
    reader: Reader,
    question: Question,
    options: Mapping[str, Mapping[str, Any]],
    methods: Sequence[str],
    baselines: Sequence[str],
    find: FindContext | None,
) -> Iterator[tuple[str, Found]]:
    """What each method and baseline finds. They share one ranking."""
    ranked = rank_passages(reader, question, _CANDIDATES)
    for name in baselines:
        if name in ("BM25", "graph") or reader.embedding:
            yield name, Found(list(_ranking(ranked, name))[:_CANDIDATES])
    for method in methods:
        if method == "local":
            context = local_context(reader, question, _options(LocalSearchOptions, options[method]), passages=ranked)
        elif method == "basic":
            basic = _options(BasicOptions, options[method])
            context = basic_context(reader, question, basic, units=list(ranked.text)[: basic.k])
        elif find is None:
            raise QueryError(f"{method} search is evaluated by `graphrag-assets evaluate --method {method}` alone.")
        else:
            context = find(method.removesuffix(RERANKED), question.text)
        yield method, Found(_sources(context), context.tokens)


RERANKED = ", reranked"
"""Follows the name of a method whose passages are in the order of GRAPHRAG_RERANK_MODEL."""


def _options(kind: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """The options of the settings. Questions are linked by their names: no model is asked."""
    return kind(**{name: value for name, value in given.items() if name != "linking"})


def _ranking(ranked: RankedPassages, name: str) -> Mapping[int, float]:
    rankings = {"BM25": ranked.words, "vectors": ranked.vectors, "fusion": ranked.text, "graph": ranked.scores}
    return rankings[name]


def _sources(context: Context) -> list[int]:
    """The text units that stand in a context, in order."""
    sources = context.frames.get("sources")
    return [] if sources is None else sources.filter("in_context")["human_readable_id"].to_list()
