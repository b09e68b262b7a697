"""Entity resolution: conservative rules that find titles of the same thing, as rows of data.

Aliases are proposed from all mentions at once, so they do not depend on the order of documents or batches. A
rule that would have to guess between two readings proposes nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_assets.pipeline.polars_schema import polars_schema
from graphrag_assets.store import schema
from graphrag_assets.text import without_qualifier

ALIAS_SCHEMA = polars_schema(schema.ENTITY_ALIASES)
_UNTYPED = ("NAME", "UNKNOWN", "")
_NEVER_SURNAMES = ("jr", "jr.", "sr", "sr.", "ii", "iii", "iv")
# A surname after one of these is not the person's own, or not enough of a name to be one person's.
_TITLED = ("mrs", "mrs.", "miss", "lady", "madame", "aunt", "mistress", "queen", "king", "prince", "princess",
           "duke", "duchess", "earl", "emperor", "pope")  # fmt: skip
_MARKS = re.compile(r"[.\-‐‑–]")
_LETTERS = re.compile(r"\b(\w) (?=\w\b)")
_SPELLED = re.compile(r"[.\-‐‑–&]|\b\w \w\b|\s\s|[^\S ]|^\s|\s$")
"""What a name can have in common with another spelling of it."""
Pairs = list[tuple[str, str]]


def propose_aliases(entity_mentions: pl.DataFrame) -> pl.DataFrame:
    """Aliases among the keys of `entity_mentions` (document_id, title, title_key, type).

    Returns one row per alias: document_id (null: in every document), alias_key, the title_key that it stands
    for, the rule, accepted (True). There are no chains of aliases, so applying them is idempotent.
    """
    keys = _Keys.of(entity_mentions)
    for rule, proposals in (
        ("article", _articles),
        ("spelling", _spellings),
        ("plural", _plurals),
        ("qualifier", _qualified),
        ("acronym_prefix", _acronym_prefixes),
        ("middle_name", _middle_names),
        ("initials", _initials),
    ):
        keys.merge(rule, proposals(keys))
    rows: list[tuple[str | None, str, str, str]] = [(None, key, keys.root(key), keys.rules[key]) for key in keys.parent]
    rows += _document_aliases(keys, entity_mentions)
    frame = pl.DataFrame([(*row, True) for row in rows], schema=ALIAS_SCHEMA, orient="row")
    return frame.sort("document_id", "alias_key", nulls_last=False)


def apply_aliases(frame: pl.DataFrame, aliases: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """`frame` (with document_id) with each key in `columns` replaced by the key that it stands for.

    Only accepted aliases count; an alias of the row's document takes precedence over a global one.
    """
    accepted = aliases.filter("accepted")
    scoped = accepted.drop_nulls("document_id")
    everywhere = accepted.filter(pl.col("document_id").is_null()).select("alias_key", _everywhere="title_key")
    for column in columns:
        here = scoped.select("document_id", pl.col("alias_key").alias(column), _scoped="title_key")
        frame = (
            frame.join(here, on=["document_id", column], how="left", maintain_order="left")
            .join(everywhere, left_on=column, right_on="alias_key", how="left", maintain_order="left")
            .with_columns(pl.coalesce("_scoped", "_everywhere", column).alias(column))
            .drop("_scoped", "_everywhere")
        )
    return frame


@dataclass(slots=True)
class _Keys:
    """The keys that are not (yet) aliases, with their counts and types; and what the others stand for."""

    counts: dict[str, int]
    types: dict[str, Counter[str]]
    acronym_led: list[str]
    documents: dict[str, set[str]]
    parent: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    best_types: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, mentions: pl.DataFrame) -> "_Keys":
        kinds = (
            mentions.filter(pl.col("title_key") != "")
            .group_by("title_key", pl.col("type").fill_null("").str.to_uppercase())
            .len()
            .sort("title_key", "type")
        )
        types: dict[str, Counter[str]] = defaultdict(Counter)
        for key, kind, n in kinds.iter_rows():
            types[key][kind] += n
        led = mentions.filter(pl.col("title").str.contains(r"^\p{Lu}{2,5} \p{Lu}\p{Ll}"))["title_key"].unique().sort()
        ends = pl.concat([led, led.str.replace(r"^\S+ ", "")])
        named = mentions.filter(pl.col("title_key").is_in(ends.implode())).select("title_key", "document_id").unique()
        documents: dict[str, set[str]] = defaultdict(set)
        for key, document in named.iter_rows():
            documents[key].add(document)
        counts = {key: counter.total() for key, counter in types.items()}
        return cls(counts, dict(types), led.to_list(), documents)

    def root(self, key: str) -> str:
        while key in self.parent:
            key = self.parent[key]
        return key

    def type(self, key: str) -> str:
        """The most frequent type that says something, ties by name; "NAME" when none does."""
        if key not in self.best_types:
            known = [(-n, name) for name, n in self.types[key].items() if name not in _UNTYPED]
            self.best_types[key] = min(known)[1] if known else "NAME"
        return self.best_types[key]

    def preferred(self, keys: Iterable[str]) -> str:
        """The most frequent key, then the shortest, then by name."""
        return min(keys, key=lambda key: (-self.counts[key], len(key), key))

    def merge(self, rule: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Makes each (alias, canonical) one key, which later rules see with the counts of both."""
        for alias, canonical in sorted(pairs):
            alias, canonical = self.root(alias), self.root(canonical)
            if alias == canonical:
                continue
            self.parent[alias], self.rules[alias] = canonical, rule
            self.counts[canonical] += self.counts.pop(alias)
            self.types[canonical] += self.types.pop(alias)
            self.best_types.pop(canonical, None)


def _articles(keys: _Keys) -> Pairs:
    """ "the great eastern" is "great eastern"."""
    return [(key, key[4:]) for key in keys.counts if key.startswith("the ") and key[4:] in keys.counts]


def _spellings(keys: _Keys) -> Pairs:
    """Keys that differ only in hyphens, full stops and "&" are the most frequent one of them."""
    forms: dict[str, list[str]] = defaultdict(list)
    for key in keys.counts:
        form = key
        if _SPELLED.search(key):
            spaced = " ".join(_MARKS.sub(" ", key).replace("&", " and ").split())
            form = _LETTERS.sub(r"\1", spaced)  # "j w brett" is "jw brett"
        forms[form].append(key)
    return [(key, keys.preferred(same)) for form, same in forms.items() if len(same) > 1 and form for key in same]


def _plurals(keys: _Keys) -> Pairs:
    """ "submarine cables" is "submarine cable", for things without a proper name."""
    concepts = {key for key in keys.counts if keys.type(key) == "CONCEPT"}
    found = []
    for key in concepts:
        if key.endswith("s") and not key.endswith(("ss", "us", "is")):
            forms = (key[:-1], key[:-3] + "y" if key.endswith("ies") else "", key[:-2] if key.endswith("es") else "")
            found += [(key, form) for form in forms if form in concepts][:1]
    return found


def _qualified(keys: _Keys) -> Pairs:
    """ "alû (mythology)" is "alû", unless two qualifiers tell things of one name apart."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for key in keys.counts:
        if (name := without_qualifier(key)) and name != key:
            by_name[name].append(key)
    return [(same[0], name) for name, same in by_name.items() if len(same) == 1 and name in keys.counts]


def _acronym_prefixes(keys: _Keys) -> Pairs:
    """ "uss niagara" is "niagara" where a document names both, and nothing else is called so with another acronym.

    Not where the name alone is a person's or a place's: "fc barcelona" is not "barcelona".
    """
    by_name: dict[str, list[str]] = defaultdict(list)
    for key in keys.acronym_led:
        name = key.partition(" ")[2]
        if key in keys.counts and name in keys.counts and keys.type(name) not in ("PERSON", "GEO"):
            by_name[name].append(key)
    return [
        (prefixed[0], name)
        for name, prefixed in by_name.items()
        if len(prefixed) == 1 and keys.documents[prefixed[0]] & keys.documents[name]
    ]


def _people(keys: _Keys) -> dict[str, list[tuple[str, ...]]]:
    """Names of people of two words and more, by surname."""
    people: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for key in sorted(keys.counts):
        words = tuple(key.split())
        if len(words) > 1 and keys.type(key) == "PERSON" and words[-1] not in _NEVER_SURNAMES and "of" not in words:
            people[words[-1]].append(words)
    return people


def _middle_names(keys: _Keys) -> Pairs:
    """ "cyrus w. field" and "cyrus west field" are "cyrus field" when no middle names contradict.

    A name contained in exactly one longer one counts too: "wildman whitehouse", "edward wildman whitehouse".
    """
    found: Pairs = []
    for same_surname in _people(keys).values():
        groups: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in same_surname:
            if words[0] not in _TITLED and not _is_initial(words[0]):
                groups[words[0]].append(words)
        for group in groups.values():
            if len(group) > 1 and all(_agree(a[1:-1], b[1:-1]) for a in group for b in group):
                best = keys.preferred(" ".join(words) for words in group)
                found += [(" ".join(words), best) for words in group if " ".join(words) != best]
        containing: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in same_surname:
            for middle in set(words[1:-1]) if words[0] not in _TITLED else ():
                containing[middle].append(words)
        for words in same_surname:
            longer = containing.get(words[0], [])
            if len(longer) == 1 and not _is_initial(words[0]):
                rest = longer[0][longer[0].index(words[0]) + 1 : -1]
                if _agree(words[1:-1], rest):
                    pair = {" ".join(words), " ".join(longer[0])}
                    best = keys.preferred(pair)
                    found += [(other, best) for other in pair - {best}]
    return found


def _is_initial(word: str) -> bool:
    return len(word.rstrip(".")) == 1


def _agree(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether two runs of middle names can be one person's: one is empty, or each pair agrees."""
    if not left or not right:
        return True
    if len(left) != len(right):
        return False
    return all(
        a == b or ((_is_initial(a) or _is_initial(b)) and a[0] == b[0]) for a, b in zip(left, right, strict=True)
    )


def _initials(keys: _Keys) -> Pairs:
    """ "j. w. brett" is "john watkins brett" when only one person's name begins so."""
    found: Pairs = []
    for same_surname in _people(keys).values():
        for words in same_surname:
            if all(_is_initial(word) for word in words[:-1]):
                full = [w for w in same_surname if _abbreviates(words[:-1], w[:-1])]
                if len(full) == 1:
                    found.append((" ".join(words), " ".join(full[0])))
    return found


def _abbreviates(initials: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if _is_initial(names[0]) or names[0] in _TITLED or initials[0][0] != names[0][0]:
        return False
    return len(names) == 1 or len(initials) == 1 or _agree(initials[1:], names[1:])


def _document_aliases(keys: _Keys, mentions: pl.DataFrame) -> list[tuple[str | None, str, str, str]]:
    """Short forms, each in its document: surnames, given names and acronyms.

    A surname stands for the only person of the document who bears it, or, where the document names none in
    full and the word is known for a person's name, for the only one of the whole corpus. A given name or an
    acronym stands for a full name of its own document, a given name only when that is named repeatedly.
    """
    occurring: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for document, key, n in mentions.group_by("document_id", "title_key").len().iter_rows():
        if key:
            occurring[document][keys.root(key)].add(key)
            named[document][keys.root(key)] += n
    everyone = {surname: [" ".join(words) for words in names] for surname, names in _people(keys).items()}
    rows: list[tuple[str | None, str, str, str]] = []
    for document, roots in occurring.items():
        surnames, given, acronyms = _full_forms(roots, keys)
        for short in roots:
            if " " in short:
                continue
            here = surnames.get(short, [])
            target, rule = "", "surname"
            if here and keys.type(short) in ("PERSON", "NAME"):
                target = _only(here)
            elif keys.type(short) == "PERSON":
                target = _only(everyone.get(short, []))
            if not target and not here and keys.type(short) == "PERSON":
                full = _only(given.get(short, []))
                target, rule = full if named[document][full] > 1 else "", "given_name"
            if not target and keys.type(short) in ("ORGANIZATION", "NAME"):
                target, rule = _only(acronyms.get(short, [])), "acronym"
            if target:
                rows += [(document, key, target, rule) for key in sorted(roots[short])]
    return rows


def _full_forms(roots: Iterable[str], keys: _Keys) -> tuple[dict[str, list[str]], ...]:
    """The document's names of several words, by surname, by given name and by acronym."""
    surnames: dict[str, list[str]] = defaultdict(list)
    given: dict[str, list[str]] = defaultdict(list)
    acronyms: dict[str, list[str]] = defaultdict(list)
    for key in roots:
        words = key.split()
        if len(words) < 2:
            continue
        if keys.type(key) == "PERSON" and "of" not in words:
            if words[-1] not in _NEVER_SURNAMES:
                surnames[words[-1]].append(key)
            if words[0] not in _TITLED:
                given[words[0]].append(key)
        elif keys.type(key) == "ORGANIZATION":
            initials = "".join(word[0] for word in words if word not in ("of", "the", "and", "for", "&"))
            if len(initials) > 2:
                acronyms[initials].append(key)
    return surnames, given, acronyms


def _only(names: Sequence[str]) -> str:
    """The one name, unless it is none, several, or a woman's by her husband's surname ("mrs cratchit")."""
    return names[0] if len(names) == 1 and names[0].split()[0] not in _TITLED else ""
