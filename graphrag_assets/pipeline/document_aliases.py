"""Short forms of names, each in its document: surnames, given names and acronyms."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

NEVER_SURNAMES = ("jr", "jr.", "sr", "sr.", "ii", "iii", "iv")
# A surname after one of these is not the person's own, or not enough of a name to be one person's.
TITLED = ("mrs", "mrs.", "miss", "lady", "madame", "aunt", "mistress", "queen", "king", "prince", "princess",
          "duke", "duchess", "earl", "emperor", "pope")  # fmt: skip


def surnames(names: pl.DataFrame) -> pl.DataFrame:
    """surname, title_key: of the people in `names` (rows of resolved_names), for names of two words and more."""
    people = names.filter((pl.col("type") == "PERSON") & (pl.col("title_key") == pl.col("stands_for")))
    words = people.select("title_key", word=pl.col("title_key").str.split(" ")).with_columns(
        surname=pl.col("word").list.last()
    )
    bears_one = ~pl.col("surname").is_in(NEVER_SURNAMES) & ~pl.col("word").list.contains("of")
    return words.filter((pl.col("word").list.len() > 1) & bears_one).select("surname", "title_key").sort(pl.all())


def document_aliases(mentions: pl.DataFrame, names: pl.DataFrame, people: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows of document_id, alias_key, title_key, rule for the documents of `mentions` (document_id, title_key).

    A surname stands for the only person of the document who bears it, or, where the document names none in
    full and the word is known for a person's name, for the only one of the whole corpus. A given name or an
    acronym stands for a full name of its own document, a given name only when that is named repeatedly.

    Args:
        names: rows of resolved_names for the keys of `mentions`.
        people: `surnames` of the whole corpus; None: `names` are all names.
    """
    roots = dict(names.select("title_key", "stands_for").iter_rows())
    types = dict(names.select("stands_for", "type").iter_rows())
    everyone: dict[str, list[str]] = defaultdict(list)
    for surname, name in (surnames(names) if people is None else people).iter_rows():
        everyone[surname].append(name)
    occurring: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for document, key, n in mentions.group_by("document_id", "title_key").len().iter_rows():
        if key:
            occurring[document][roots[key]].add(key)
            named[document][roots[key]] += n
    rows: list[tuple[str, str, str, str]] = []
    for document, keys in occurring.items():
        bearers, given, acronyms = _full_forms(keys, types)
        for short in keys:
            if " " in short:
                continue
            here = bearers.get(short, [])
            target, rule = "", "surname"
            if here and types[short] in ("PERSON", "NAME"):
                target = _only(here)
            elif types[short] == "PERSON":
                target = _only(everyone.get(short, []))
            if not target and not here and types[short] == "PERSON":
                full = _only(given.get(short, []))
                target, rule = full if named[document][full] > 1 else "", "given_name"
            if not target and types[short] in ("ORGANIZATION", "NAME"):
                target, rule = _only(acronyms.get(short, [])), "acronym"
            if target:
                rows += [(document, key, target, rule) for key in sorted(keys[short])]
    schema = dict.fromkeys(("document_id", "alias_key", "title_key", "rule"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _full_forms(keys: Iterable[str], types: Mapping[str, str]) -> tuple[dict[str, list[str]], ...]:
    """The document's names of several words, by surname, by given name and by acronym."""
    bearers: dict[str, list[str]] = defaultdict(list)
    given: dict[str, list[str]] = defaultdict(list)
    acronyms: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        words = key.split()
        if len(words) < 2:
            continue
        if types[key] == "PERSON" and "of" not in words:
            if words[-1] not in NEVER_SURNAMES:
                bearers[words[-1]].append(key)
            if words[0] not in TITLED:
                given[words[0]].append(key)
        elif types[key] == "ORGANIZATION":
            initials = "".join(word[0] for word in words if word not in ("of", "the", "and", "for", "&"))
            if len(initials) > 2:
                acronyms[initials].append(key)
    return bearers, given, acronyms


def _only(names: Sequence[str]) -> str:
    """The one name, unless it is none, several, or a woman's by her husband's surname ("mrs cratchit")."""
    return names[0] if len(names) == 1 and names[0].split()[0] not in TITLED else ""
