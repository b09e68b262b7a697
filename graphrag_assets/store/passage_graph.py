"""Derives the graph that passages are ranked through: which text units are about a thing, and which name it.

A text unit is about what its document's title and its headings name, and about the first thing it names if it begins
with a definition of it ("Cyrus Field was an American …"). Only such things link text units: from one that names a thing
to those about it. Mere mentions do not link text units: a ranking through mentions loses to plain BM25 on news
(docs/query.md has the figures).
"""

import duckdb
import polars as pl

from graphrag_assets.ids import number_of
from graphrag_assets.store.connections import ArrowStream, execute_in_order
from graphrag_assets.store.schema import sql
from graphrag_assets.text.words import UNSPACED, fold, name_key, search_words, title_key, without_qualifier

MAX_HEADED = 32
"""Text units under one title or heading; a name with more ("Introduction", a whole book) says too little about each."""
MAX_DEFINITIONS = 2
"""Text units that begin with a definition of one thing; a name with more is a common subject, not a defined one."""
MAX_TEXTS = 1_000
"""Texts that have the rarest word of a title; a title of more frequent words names nothing in particular."""

_SPECIAL = "SELECT DISTINCT title_key FROM entities WHERE regexp_matches(title_key, '[^\\x00-\\x7f]|-')"
# "X is a …" in the languages whose words are stemmed and whose copula stands between name and noun: verbs, articles.
_COPULAS = (
    ("is|was|are|were", "a|an|the|one"),
    ("ist|war|sind|waren", "ein|eine|einer|eines|der|die|das"),
    ("est|était|sont|étaient|fut", "un|une|des|le|la|les"),
    ("es|era|fue|son|eran", "un|una|unos|unas|el|la|los|las"),
    ("è|era|fu|sono|erano", "un|uno|una|il|lo|la|i|gli|le"),
    ("é|era|foi|são|eram", "um|uma|o|a|os|as"),
    ("is|was|zijn|waren", "een|de|het"),
    ("är|var", "en|ett|den|det"),
)
# Between a name and its copula: a parenthesis ("(born 1950)"), an apposition between commas, a word ("also").
_BETWEEN = r"(?:\s*\([^)]{0,120}\))?(?:,[^,.\n]{1,100},)?(?:\s[\p{L}\p{M}'’-]+)?\s"
_WITHOUT_ARTICLE = r"\W*(?:\([^)]*\)\s*)?(?:[—–]|является|являлся|являлась|был|была|是)"
# The letter classes stand outside of the alternatives: compiling them once per language took 60 ms.
_WITH_ARTICLE = "|".join(f"(?:{verbs}) (?:{articles})" for verbs, articles in _COPULAS)
DEFINITION = rf"^{_BETWEEN}(?:{_WITH_ARTICLE})[^\p{{L}}]|^{_WITHOUT_ARTICLE}"
"""What follows a name that a sentence defines, as a regular expression of DuckDB.

It is narrow on purpose: "Field said that the cable was a success" is no definition of Field.
"""


def write_passage_graph(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill entity_names, passage_subjects and passage_names.

    Args:
        connection: has the publication in use, with entities, texts, bridge tables and postings in it.
    """
    headings = pl.DataFrame(connection.sql("SELECT DISTINCT unnest(headings) AS heading FROM text_units"))[
        "heading"
    ].sort()
    special = pl.DataFrame(connection.sql(_SPECIAL))
    spellings = pl.Series("spelling", map(name_key, special["title_key"]), pl.String)
    connection.register("heading_forms", ArrowStream(_heading_forms(headings)))
    connection.register("spellings", ArrowStream(special.with_columns(spellings)))
    parameters = {
        "max_texts": MAX_TEXTS,
        "definition": DEFINITION,
        "max_definitions": MAX_DEFINITIONS,
        "max_headed": MAX_HEADED,
        "unspaced": f"[{UNSPACED}]",
    }
    execute_in_order(connection, sql("passage_graph"), parameters)
    connection.unregister("heading_forms")
    connection.unregister("spellings")


def _heading_forms(headings: pl.Series) -> pl.DataFrame:
    """heading, form, name, words, is_name: of titles and headings, also without their qualifiers."""
    forms = [(heading, form) for heading in headings for form in names_of(heading)]
    named = pl.DataFrame(forms, {"heading": pl.String(), "form": pl.String()}, orient="row")
    words = [list(dict.fromkeys(fold(word) for word in some)) for some in search_words(named["form"])]
    return named.with_columns(
        pl.Series("name", [number_of(name_key(title_key(form))) for form in named["form"]], dtype=pl.UInt64),
        pl.Series("words", words, dtype=pl.List(pl.String)),
        is_name=pl.Series([is_name(form) for form in named["form"]], dtype=pl.Boolean),
    ).filter(pl.col("words").list.len() > 0)


def names_of(title: str) -> list[str]:
    """Return what a title or heading names: itself, and itself without a qualifier in parentheses at its end."""
    return [name for name in dict.fromkeys([title, without_qualifier(title)]) if name]


def is_name(title: str) -> bool:
    """Whether a title is written as a name: one word, or a capital after the first word, or a script without case.

    >>> is_name("Alder Bridge"), is_name("Results"), is_name("The squadron leaves"), is_name("北京 大学")
    (True, True, False, True)
    """
    _, *others = title.split()
    return not others or any(not word.islower() for word in others if word[0].isalpha())
