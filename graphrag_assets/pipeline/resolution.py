"""Entity resolution: conservative rules that find titles of the same thing, as rows of data.

A rule that would have to guess between two readings proposes nothing. Short forms, such as surnames, are resolved in
each document (`document_aliases`). No alias depends on the order of documents or batches.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import polars as pl

from graphrag_assets.pipeline.document_aliases import FORMAL, NEVER_SURNAMES, TITLED, document_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.abbreviations import split_abbreviation
from graphrag_assets.text.inflections import case_key, is_oblique
from graphrag_assets.text.words import without_qualifier

ALIAS_SCHEMA = polars_schema(schema.ENTITY_ALIASES)
UNTYPED = ("NAME", "UNKNOWN", "")
_MARKS = re.compile(r"(?<=\w)\.|[\-‐‑–]")  # not that of ".NET"
_LETTERS = re.compile(r"\b(\w) (?=\w\b)")
_LEGAL_FORM = re.compile(
    r"(.+?),? (?:ltd|limited|llc|llp|plc|inc|incorporated|corp|corporation|pty|gmbh|ag|kg|kgaa|ohg|se|ab|asa|a/s|aps"
    r"|oyj?|b\.?v|n\.?v|s\.?a|s\.?a\.?s|s\.?a\.?r\.?l|s\.?p\.?a|s\.?r\.?l|s\.?l)\.?(?: & co\.?(?: kg)?)?"
)
_GUESSES = ("qualifier", "acronym_prefix", "given_names")
"""Rules that do not relate two names which a model has told apart."""
Pairs = list[tuple[str, str]]
GivenNames = tuple[str, ...]


def propose_aliases(entity_mentions: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Aliases among the keys of `entity_mentions`.

    A model's distinctions are kept: two names that one of its answers lists are not related by a rule that guesses, nor
    is a short name with the person whose organizations and places are others.

    Args:
        entity_mentions: document_id, title, title_key, type; text_unit_id of a model's extraction, else null;
            in_header: the name stands only in the header of a mail.
        relationships: document_id, source_key, target_key; by_model: a model has found and named it.

    Returns one row per alias, sorted: document_id (null: in every document), alias_key, the title_key that it stands
    for, the rule. There are no chains of aliases, so applying them is idempotent.
    """
    names = _resolved_names(entity_mentions, relationships)
    everywhere = names.drop_nulls("rule").select(
        pl.lit(None, pl.String).alias("document_id"), alias_key="title_key", title_key="stands_for", rule="rule"
    )
    aliases = pl.concat([everywhere, document_aliases(entity_mentions, names, relationships)])
    return aliases.cast(ALIAS_SCHEMA).sort("document_id", "alias_key", nulls_last=False)


def _resolved_names(entity_mentions: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Return what each key of `entity_mentions` stands for in every document: title_key, stands_for, rule, type;
    sorted.

    rule: null where the name is no alias. type: the most frequent one of the name that it stands for.
    """
    mentions = entity_mentions.filter(pl.col("title_key") != "")
    kinds = mentions.group_by("title_key", pl.col("type").fill_null("").str.to_uppercase()).len()
    keys = _Keys()
    for key, kind, n in kinds.sort("title_key", "type").iter_rows():
        keys.types[key][kind] += n
        keys.counts[key] += n
    for key, document in mentions.select("title_key", "document_id").unique().iter_rows():
        keys.documents[key].add(document)
    for key, unit in mentions.select("title_key", "text_unit_id").drop_nulls().unique().iter_rows():
        keys.units[key].add(unit)
    formal = {key: plain for key in keys.counts if (plain := without_legal_form(key)) != key}
    of_firms = pl.col("source_key", "target_key").is_in([*formal, *formal.values()])
    for one, other in relationships.filter(pl.any_horizontal(of_firms)).select("source_key", "target_key").iter_rows():
        keys.partners[one].add(other)
        keys.partners[other].add(one)
    led = mentions.filter(pl.col("title").str.contains(r"^\p{Lu}{2,5} \p{Lu}\p{Ll}"))
    keys.acronym_led = led["title_key"].unique().sort().to_list()
    names = sorted(keys.counts)
    keys.resolve()
    roots = [keys.root(key) for key in names]
    return pl.DataFrame(
        {
            "title_key": names,
            "stands_for": roots,
            "rule": [keys.rules.get(key) for key in names],
            "type": [keys.type(root) for root in roots],
        },
        schema=dict.fromkeys(("title_key", "stands_for", "rule", "type"), pl.String),
    )


def without_legal_form(key: str) -> str:
    """Return a name without the legal form at its end.

    >>> without_legal_form("kestrel refrigeration ltd."), without_legal_form("maier gmbh & co. kg")
    ('kestrel refrigeration', 'maier')
    """
    match = _LEGAL_FORM.fullmatch(key)
    return match[1] if match else key


@dataclass(slots=True)
class _Keys:
    """The keys that are not (yet) aliases, with counts and types; and what the others stand for.

    `documents`: those that name a key; `partners`: the names that one with a legal form, or without it, is related to;
    `units`: the text units in which a model names a key.
    """

    counts: Counter[str] = field(default_factory=Counter)
    types: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    documents: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    partners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    units: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    acronym_led: list[str] = field(default_factory=list)
    parent: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    best_types: dict[str, str] = field(default_factory=dict)

    def resolve(self) -> None:
        """Apply the rules in their order."""
        for rule, proposals in (
            ("article", _articles),
            ("spelling", _spellings),
            ("legal_form", _legal_forms),
            ("plural", _plurals),
            ("inflection", _inflections),
            ("qualifier", _qualified),
            ("acronym_prefix", _acronym_prefixes),
            ("given_names", _given_names),
        ):
            self.merge(rule, proposals(self))

    def root(self, key: str) -> str:
        while key in self.parent:
            key = self.parent[key]
        return key

    def type(self, key: str) -> str:
        """Return the most frequent type that says something, ties by name; "NAME" when none does."""
        if key not in self.best_types:
            specific = [(-n, name) for name, n in self.types[key].items() if name not in UNTYPED]
            self.best_types[key] = min(specific)[1] if specific else "NAME"
        return self.best_types[key]

    def preferred(self, keys: Iterable[str]) -> str:
        """Return the most frequent key, then the shortest, then by name."""
        return min(keys, key=lambda key: (-self.counts[key], len(key), key))

    def merge(self, rule: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Make each (alias, canonical) one key, which later rules see with the counts of both."""
        for alias, canonical in sorted(pairs):
            alias, canonical = self.root(alias), self.root(canonical)
            if alias == canonical or (rule in _GUESSES and self.units[alias] & self.units[canonical]):
                continue
            self.parent[alias], self.rules[alias] = canonical, rule
            self.counts[canonical] += self.counts.pop(alias)
            self.types[canonical] += self.types.pop(alias)
            self.best_types.pop(canonical, None)


def _articles(keys: _Keys) -> Pairs:
    """Return "the great eastern" is "great eastern"."""
    return [(key, key[4:]) for key in keys.counts if key.startswith("the ") and key[4:] in keys.counts]


def _spellings(keys: _Keys) -> Pairs:
    """Keys that differ only in hyphens, full stops and "&" are the most frequent one of them."""
    forms: dict[str, list[str]] = defaultdict(list)
    for key in keys.counts:
        forms[_form(key)].append(key)
    return [(key, keys.preferred(same)) for form, same in forms.items() if len(same) > 1 and form for key in same]


def _form(key: str) -> str:
    """Return a name without what its spellings differ in."""
    return _LETTERS.sub(r"\1", " ".join(_MARKS.sub(" ", key).replace("&", " and ").split()))  # "j w brett": "jw brett"


def _legal_forms(keys: _Keys) -> Pairs:
    """ "telvane" is "telvane ltd" where a document names both, or they are related to one thing; not a person."""
    formal: dict[str, list[str]] = defaultdict(list)
    for key in keys.counts:
        if (plain := without_legal_form(key)) != key:
            formal[plain].append(key)
    return [
        (plain, same[0])
        for plain, same in formal.items()
        if len(same) == 1
        and plain in keys.counts
        and keys.type(plain) not in ("PERSON", "GEO")
        and (keys.documents[plain] & keys.documents[same[0]] or keys.partners[plain] & keys.partners[same[0]])
    ]


def _plurals(keys: _Keys) -> Pairs:
    """ "submarine cables" is "submarine cable": things without a proper name, and longer names of one type."""
    pairs = []
    for key in keys.counts:
        kind = keys.type(key)
        if key.endswith("s") and not key.endswith(("ss", "us", "is")) and _has_number(key, kind):
            forms = (key[:-1], key[:-3] + "y" if key.endswith("ies") else "", key[:-2] if key.endswith("es") else "")
            pairs += [(key, form) for form in forms if form in keys.counts and keys.type(form) == kind][:1]
    return pairs


def _has_number(key: str, kind: str) -> bool:
    """Whether a plural and a singular are the same thing. Families and places are not what their singular is."""
    return kind == "CONCEPT" or (" " in key and kind not in ("PERSON", "GEO", *UNTYPED))


def _inflections(keys: _Keys) -> Pairs:
    """Cases of a name are its nominative: "москве" is "москва", "deutschen bundestages" is "deutscher bundestag"."""
    forms: dict[str, list[str]] = defaultdict(list)
    for key in keys.counts:
        forms[case_key(key)].append(key)
    return [
        (key, keys.preferred([form for form in same if not is_oblique(form)] or same))
        for same in forms.values()
        if len(same) > 1
        for key in same
    ]


def _qualified(keys: _Keys) -> Pairs:
    """ "alû (mythology)" is "alû", unless two qualifiers tell things of one name apart. Abbreviations do not."""
    by_name: dict[str, list[str]] = defaultdict(list)
    pairs = []
    for key in keys.counts:
        if key.endswith(")") and (split := split_abbreviation(key)):
            pairs += [(key, split[0])] if split[0] in keys.counts else []
        elif (name := without_qualifier(key)) and name != key:
            by_name[name].append(key)
    return pairs + [(same[0], name) for name, same in by_name.items() if len(same) == 1 and name in keys.counts]


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


def _given_names(keys: _Keys) -> Pairs:
    """People of one surname whose given names fit are one: "cyrus w. field" and "c. field" are "cyrus field".

    Not where a name fits two that do not fit each other: "g. bush" may be George or Gloria. Nor do initials alone fit
    each other: "j. smith" may not be "j. w. smith".
    """
    people: dict[str, list[GivenNames]] = defaultdict(list)
    for key in sorted(keys.counts):
        *given_names, last = key.split()
        named = given_names and last not in NEVER_SURNAMES and given_names[0] not in TITLED and "of" not in given_names
        # "m. weber" may be Marie
        is_formal = named and given_names[0] in FORMAL and not all(map(_is_initial, given_names))
        if named and not is_formal and keys.type(key) == "PERSON":
            people[last].append(tuple(given_names))
    pairs: Pairs = []
    for last, names in people.items():
        fitting = _fitting(names)
        clear = {
            one for one, group in fitting.items() if all(_fit(a, b, of_middle=True) for a, b in combinations(group, 2))
        }
        for one in clear:
            full = [other for other in fitting[one] if other in clear and not _is_initial(other[0])]
            if full:
                best = keys.preferred(" ".join((*other, last)) for other in full)
                pairs.append((" ".join((*one, last)), best))
    return pairs


def _fitting(names: Sequence[GivenNames]) -> dict[GivenNames, list[GivenNames]]:
    """Return for each name those that fit it; only names with a first letter or a word in common are compared."""
    led: dict[str, set[GivenNames]] = defaultdict(set)  # by the first letter, and by the first word
    initialed: dict[str, set[GivenNames]] = defaultdict(set)  # of those, the ones with an initial, by its letter
    having: dict[str, set[GivenNames]] = defaultdict(set)  # by each word
    for name in names:
        led[name[0][0]].add(name)
        led[name[0]].add(name)
        if _is_initial(name[0]):
            initialed[name[0][0]].add(name)
        for word in name:
            having[word].add(name)
    fitting = {}
    for one in names:
        near = led[one[0][0]] if _is_initial(one[0]) else initialed[one[0][0]] | having[one[0]]
        near = near.union(*(led[word] for word in one[1:] if not _is_initial(word)))
        fitting[one] = [other for other in near if _fit(one, other)]
    return fitting


def _fit(one: GivenNames, other: GivenNames, of_middle: bool = False) -> bool:
    """Whether given names can be one person's: first names agree, or the shorter ones begin with a middle name.

    `of_middle`: an initial may be that of a middle name.
    """
    if _abbreviates(one[0], other[0]):
        return _agree(one[1:], other[1:])
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) < len(longer) and any(
        (part == shorter[0] and not _is_initial(part)) or (of_middle and _abbreviates(shorter[0], part))
        for place, part in enumerate(longer)
        if _agree(shorter[1:], longer[place + 1 :])
    )


def _agree(one: GivenNames, other: GivenNames) -> bool:
    """Whether two runs of middle names can be one person's: one is empty, or each pair agrees."""
    return not one or not other or (len(one) == len(other) and all(map(_abbreviates, one, other)))


def _is_initial(word: str) -> bool:
    """Whether a word is one letter of a script with capitals: "李" is a name."""
    return len(word.rstrip(".")) == 1 and word.lower() != word.upper()


def _abbreviates(one: str, other: str) -> bool:
    return one == other or ((_is_initial(one) or _is_initial(other)) and one[0] == other[0])
