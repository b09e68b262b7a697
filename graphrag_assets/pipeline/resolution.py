"""Entity resolution: conservative rules that find titles of the same thing, as rows of data.

A rule that would have to guess between two readings proposes nothing. Rules that hold in every document compare names
of one *family*, with the same last word. Short forms, such as surnames, are resolved in each document
(`document_aliases`). No alias depends on the order of documents or batches.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_assets.pipeline.document_aliases import FORMAL, NEVER_SURNAMES, TITLED, document_aliases
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.abbreviations import split_abbreviation
from graphrag_assets.text.inflections import case_key, is_oblique
from graphrag_assets.text.words import without_qualifier

LEGAL_FORM = "legal_form"
ALIAS_SCHEMA = polars_schema(schema.ENTITY_ALIASES)
UNTYPED = ("NAME", "UNKNOWN", "")
_MARKS = re.compile(r"(?<=\w)\.|[\-‐‑–]")  # not that of ".NET"
_LETTERS = re.compile(r"\b(\w) (?=\w\b)")
_SPELLED = re.compile(r"[.\-‐‑–&]|\b\w \w\b|\s\s|[^\S ]|^\s|\s$")
"""What a name can have in common with another spelling of it."""
_LEGAL_FORM = re.compile(
    r"(.+?),? (?:ltd|limited|llc|llp|plc|inc|incorporated|corp|corporation|pty|gmbh|ag|kg|kgaa|ohg|se|ab|asa|a/s|aps"
    r"|oyj?|b\.?v|n\.?v|s\.?a|s\.?a\.?s|s\.?a\.?r\.?l|s\.?p\.?a|s\.?r\.?l|s\.?l)\.?(?: & co\.?(?: kg)?)?"
)
_GUESSES = ("qualifier", "acronym_prefix", "middle_name", "initials")
"""Rules that do not relate two names which a model has told apart."""
Pairs = list[tuple[str, str]]


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
    kinds = (
        entity_mentions.filter(pl.col("title_key") != "")
        .group_by("title_key", pl.col("type").fill_null("").str.to_uppercase())
        .len()
        .sort("title_key", "type")
    )
    types: dict[str, Counter[str]] = defaultdict(Counter)
    families: dict[str, list[str]] = defaultdict(list)
    for key, kind, n in kinds.iter_rows():
        if key not in types:
            families[family(key)].append(key)
        types[key][kind] += n
    units: dict[str, set[str]] = defaultdict(set)
    for key, unit in entity_mentions.select("title_key", "text_unit_id").drop_nulls().unique().iter_rows():
        units[key].add(unit)
    formal = {key: plain for key in types if (plain := without_legal_form(key)) in types and plain != key}
    legal = pl.Series([*formal, *formal.values()], dtype=pl.String).unique()
    partners: dict[str, set[str]] = defaultdict(set)
    for one, other in (("source_key", "target_key"), ("target_key", "source_key")):
        for key, partner in relationships.filter(pl.col(one).is_in(legal.implode())).select(one, other).iter_rows():
            partners[key].add(partner)
    led = entity_mentions.filter(pl.col("title").str.contains(r"^\p{Lu}{2,5} \p{Lu}\p{Ll}"))["title_key"].unique()
    ends = pl.concat([led, led.str.replace(r"^\S+ ", ""), legal])
    named = (
        entity_mentions.filter(pl.col("title_key").is_in(ends.implode())).select("title_key", "document_id").unique()
    )
    documents: dict[str, set[str]] = defaultdict(set)
    for key, document in named.iter_rows():
        documents[key].add(document)
    leading = set(led)
    rows: list[tuple[str, str, str | None, str]] = []
    for members in families.values():
        counts = {key: types[key].total() for key in members}
        own_types = {key: types[key] for key in members}
        keys = _Keys(counts, own_types, sorted(leading & counts.keys()), documents, partners, units)
        if len(members) > 1:
            keys.resolve()
        rows += [(key, keys.root(key), keys.rules.get(key), keys.type(keys.root(key))) for key in members]
    columns = dict.fromkeys(("title_key", "stands_for", "rule", "type"), pl.String)
    return pl.DataFrame(rows, schema=columns, orient="row").sort("title_key")


def family(key: str) -> str:
    """Return what all names that may be one have in common: the last word, without the ending of a plural.

    >>> family("submarine cables"), family("the Submarine-Cable (1866)")
    ('cabl', 'Cabl')
    """
    words = _form(without_legal_form(without_qualifier(key))).split()
    if not words:
        return ""
    return words[-1].rstrip("eisy") if words[-1].isascii() else case_key(words[-1]).rstrip("аeisy")


def without_legal_form(key: str) -> str:
    """Return a name without the legal form at its end.

    >>> without_legal_form("kestrel refrigeration ltd."), without_legal_form("maier gmbh & co. kg")
    ('kestrel refrigeration', 'maier')
    """
    match = _LEGAL_FORM.fullmatch(key)
    return match[1] if match else key


def apply_aliases(frame: pl.DataFrame, aliases: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """`frame` (with document_id) with each key in `columns` replaced by the key that it stands for.

    An alias of the row's document takes precedence over a global one.
    """
    scoped = aliases.drop_nulls("document_id")
    everywhere = aliases.filter(pl.col("document_id").is_null()).select("alias_key", _everywhere="title_key")
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
    """The keys of a family that are not (yet) aliases, with counts and types; and what the others stand for.

    Of names with and without a legal form also the documents and the names that they are related to. `units`: the text
    units in which a model names a key.
    """

    counts: dict[str, int]
    types: dict[str, Counter[str]]
    acronym_led: list[str]
    documents: dict[str, set[str]]
    partners: dict[str, set[str]]
    units: dict[str, set[str]]
    parent: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    best_types: dict[str, str] = field(default_factory=dict)

    def resolve(self) -> None:
        """Apply the rules in their order."""
        for rule, proposals in (
            ("article", _articles),
            ("spelling", _spellings),
            (LEGAL_FORM, _legal_forms),
            ("plural", _plurals),
            ("inflection", _inflections),
            ("qualifier", _qualified),
            ("acronym_prefix", _acronym_prefixes),
            ("middle_name", _middle_names),
            ("initials", _initials),
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
    if not _SPELLED.search(key):
        return key
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


def _people(keys: _Keys) -> dict[str, list[tuple[str, ...]]]:
    """Names of people of two words and more, by surname."""
    people: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for key in sorted(keys.counts):
        words = tuple(key.split())
        if len(words) > 1 and keys.type(key) == "PERSON" and words[-1] not in NEVER_SURNAMES and "of" not in words:
            people[words[-1]].append(words)
    return people


def _middle_names(keys: _Keys) -> Pairs:
    """ "cyrus w. field" and "cyrus west field" are "cyrus field" when no middle names contradict.

    A name contained in exactly one longer one counts too: "wildman whitehouse", "edward wildman whitehouse".
    """
    pairs: Pairs = []
    for same_surname in _people(keys).values():
        groups: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in same_surname:
            if words[0] not in TITLED and words[0] not in FORMAL and not _is_initial(words[0]):
                groups[words[0]].append(words)
        for group in groups.values():
            if len(group) > 1 and all(_agree(a[1:-1], b[1:-1]) for a in group for b in group):
                best = keys.preferred(" ".join(words) for words in group)
                pairs += [(" ".join(words), best) for words in group if " ".join(words) != best]
        containing: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in same_surname:
            for middle in set(words[1:-1]) if words[0] not in TITLED else ():
                containing[middle].append(words)
        for words in same_surname:
            longer = containing.get(words[0], [])
            if len(longer) == 1 and not _is_initial(words[0]):
                rest = longer[0][longer[0].index(words[0]) + 1 : -1]
                if _agree(words[1:-1], rest):
                    pair = {" ".join(words), " ".join(longer[0])}
                    best = keys.preferred(pair)
                    pairs += [(other, best) for other in pair - {best}]
    return pairs


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
    pairs: Pairs = []
    for same_surname in _people(keys).values():
        for words in same_surname:
            if all(_is_initial(word) for word in words[:-1]):
                full = [w for w in same_surname if _abbreviates(words[:-1], w[:-1])]
                if len(full) == 1:
                    pairs.append((" ".join(words), " ".join(full[0])))
    return pairs


def _abbreviates(initials: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if _is_initial(names[0]) or names[0] in TITLED or initials[0][0] != names[0][0]:
        return False
    return len(names) == 1 or len(initials) == 1 or _agree(initials[1:], names[1:])
