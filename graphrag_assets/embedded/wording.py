"""How sentences begin: with an anaphor, whose antecedent an extract has to contain, or as a definition of a thing."""

import re
from collections.abc import Iterable

import polars as pl

from graphrag_assets.embedded.tagging import alternatives

_OPENING = "[\"'“‘«„(\\[—–-]*"
_CONNECTIVES = (
    "and|but|so|yet|or|nor|then|thus|hence|therefore|however|moreover|furthermore|nevertheless|nonetheless|meanwhile"
    "|instead|otherwise|besides|still|also|again|later|afterwards|eventually|finally|indeed|similarly|accordingly"
    "|consequently|for example|for instance|in addition|in fact|of course|as a result|at first|at last|yes|no|oh|well"
)
_ANAPHORIC = re.compile(
    rf"{_OPENING}(?:(?:{_CONNECTIVES})\b[,;:!.]* +{_OPENING})*"
    rf"(?:{alternatives('anaphors')}(?!\w)"
    r"|the (?:former|latter|same|other|others|two)\b)",
    re.IGNORECASE,
)
_SHORTEST_LEAD = 100


def begins_with_anaphor(text: str) -> bool:
    """Whether `text` begins with a pronoun or the like, perhaps after a connective.

    >>> [begins_with_anaphor(text) for text in ("However, he left.", "Her father left.", "Herr Vogel left.")]
    [True, True, False]
    """
    return _ANAPHORIC.match(text) is not None


def self_contained(text: str, before: Iterable[str], limit: int) -> str:
    """Return the anaphoric sentence `text`, led by the nearest sentence `before` it that can stand alone; or "".

    `before` are the sentences of its paragraph, the nearest first. "…" marks omitted sentences. If both
    together have more than `limit` characters, the lead is cut, then the sentence.
    """
    for distance, lead in enumerate(before):
        if not begins_with_anaphor(lead):
            joint = " … " if distance else " "
            lead = shortened(lead, max(limit - len(joint) - len(text), _SHORTEST_LEAD))
            return shortened(f"{lead}{joint}{text}", limit)
    return ""


def shortened(text: str, limit: int) -> str:
    """`text`, cut at a word and marked with "…" when longer than `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut).rstrip(" ,;:-") + "…"


_ASIDE = r"(?: ?\([^()]*\)| ?\[[^\]]*\])?"  # "Alû (Akkadian: demon) is …"
COPULA = (
    r"(?:is|was|are|were|became|remains|has been|had been|ist|sind|war|waren|wurde|est|sont|était|étaient|fut|es|son"
    r"|era|eran|fue|был|была|было|были|является|è|sono|é|são|foi|jest|był|była|är|var)"
)
WHAT = (
    r"(?:an?|the|one|any|some|his|her|its|their|born|among|part|located|\w+'s|eine?r?|der|die|das|une?|l'|les?|la|una?|el"
    r"|los|las|il|lo|uma?|o|en|ett)"
)
_INSERTED = rf"['\"]?{_ASIDE}(?:,[^,.;]{{0,60}},)?(?:,? (?:who|which|that))?"
IS_A = rf"{_INSERTED}(?:,? {COPULA} (?:also |then |\w+ly )?{WHAT}\b| (?:—|–|--) )"
"""What makes a sentence a definition after the name that it begins with, but for an apposition."""
_FOLLOWED = rf"(?:{IS_A}|{_INSERTED}, {WHAT} )"
DEFINES = re.compile(_FOLLOWED, re.IGNORECASE)
"""Matches, right after a name, what makes its sentence a definition."""
_BEFORE_NAME = (
    r"^[\"'“‘*_]?(?:(?:[Tt]he|[Aa]n?|(?i:mr|mrs|ms|dr|sir|captain|colonel|general|professor|president)\.?) )?[\"'“‘*_]?"
)
_CAPITALS = r"^((?:\p{Lu}[\w.'’-]* )*\p{Lu}[\w'’-]*)"
_REST_OF_NAME = r"(?:,? [A-Z0-9][\w.'’-]*){0,3}"


def is_subject(description: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Whether the description begins with the title, or with a name that ends in its last word ("R. C. Halpin")."""
    return _after_name(description, title).is_not_null()


def says_what_it_is(description: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Whether the description begins with a definition of what has this title."""
    return _after_name(description, title).str.contains(f"^{_REST_OF_NAME}(?i:{_FOLLOWED})").fill_null(False)


def _after_name(description: pl.Expr, title: pl.Expr) -> pl.Expr:
    """Return what follows the title where the description begins with it, else null."""
    text = description.str.replace(_BEFORE_NAME, "")
    capitals = text.str.extract(_CAPITALS)
    of_that_name = capitals.str.ends_with(title.str.split(" ").list.last())
    names = (title, title.str.replace(r"^[Tt]he ", ""), pl.when(of_that_name).then(capitals))
    cut = [text.str.strip_prefix(name) for name in names]
    return pl.coalesce(pl.when((rest != text) & rest.str.contains(r"^(?:\W|$)")).then(rest) for rest in cut)
