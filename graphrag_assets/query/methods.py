"""The search methods: their names, options, contexts and answers. `GraphRAG` has a method of each name.

The command line, the server and the evaluation take the names from here; a test asks docs/query.md for a row of each.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from graphrag_assets.extras import lazy, planned
from graphrag_assets.query import basic, drift, global_search, local
from graphrag_assets.query.ask import Ask
from graphrag_assets.query.context import Context
from graphrag_assets.query.options import CommonOptions
from graphrag_assets.query.results import Answer


class SearchMethod(NamedTuple):
    """A search method: its options, how it builds a context, how it answers, and what it is for in a few words."""

    options: type[CommonOptions]
    context: Callable[[Ask[Any]], Awaitable[Context]]
    answer: Callable[[Ask[Any]], Awaitable[Answer]]
    use: str


MethodName = Literal["local", "global", "drift", "basic", "lazy", "planned"]
SEARCH_METHODS: Mapping[str, SearchMethod] = {
    "local": SearchMethod(local.LocalSearchOptions, local.build_context, local.answer, "particular things"),
    "global": SearchMethod(
        global_search.GlobalOptions, global_search.build_context, global_search.answer, "themes of everything"
    ),
    "drift": SearchMethod(drift.DriftOptions, drift.build_context, drift.answer, "in steps"),
    "basic": SearchMethod(basic.BasicOptions, basic.build_context, basic.answer, "passages alone"),
    "lazy": SearchMethod(lazy.LazyOptions, lazy.build_context, lazy.answer, "tested passages"),
    "planned": SearchMethod(
        planned.PlannedOptions, planned.build_context, planned.answer, "questions with several links"
    ),
}
METHODS: tuple[MethodName, ...] = get_args(MethodName)
AnswerMethodName = Literal["ask", MethodName]
"""The methods that answer: those with a context, and the one that selects one of them."""
