"""Short forms of names, each in its document: surnames, given names and abbreviations."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from graphrag_assets.embedded import word_list
from graphrag_assets.text.abbreviations import MIN_LENGTH, count_initials, initials_fit, split_abbreviation

NEVER_SURNAMES = ("jr", "jr.", "sr", "sr.", "ii", "iii", "iv")
# A surname after one of these is not the person's own, or not enough of a name to be one person's.
TITLED = ("mrs", "mrs.", "miss", "lady", "madame", "aunt", "mistress", "queen", "king", "prince", "princess",
          "duke", "duchess", "earl", "emperor", "pope")  # fmt: skip
FORMAL = frozenset({"mr", "mr.", "ms", "ms.", "dr", "dr.", "prof", "prof.", "herr", "frau", "monsieur", "m.", "mme"})
"""Before a surname alone they make no name of their own."""
_BODIES = frozenset({"ORGANIZATION", "COMPANY", "AGENCY", "INSTITUTION", "GEO", "PLACE", "LOCATION", "CITY", "COUNTRY"})


def short_forms(names: pl.DataFrame) -> pl.DataFrame:
    """short, title_key, type: what short forms mean in the whole corpus, by its resolved `names`.

    The surnames of people, of names of two words and more, and the abbreviations that stand in parentheses after a
    name.
    """
    people = names.filter((pl.col("type") == "PERSON") & (pl.col("title_key") == pl.col("stands_for")))
    words = people.select("title_key", "type", word=pl.col("title_key").str.split(" ")).with_columns(
        short=pl.col("word").list.last()
    )
    bears_one = ~pl.col("short").is_in(NEVER_SURNAMES) & ~pl.col("word").list.contains("of")
    named = (pl.col("word").list.len() > 1) & ~_is_formal(pl.col("word"))
    surnames = words.filter(named & bears_one).select("short", "title_key", "type")
    qualified = names.filter(pl.col("title_key").str.ends_with(")")).select("title_key", "stands_for", "type")
    stated = [(split[1], *full) for key, *full in qualified.iter_rows() if (split := split_abbreviation(key))]
    abbreviations = pl.DataFrame(stated, schema=surnames.schema, orient="row").filter(pl.col("type") != "PERSON")
    return pl.concat([surnames, abbreviations]).unique().sort(pl.all())


def _is_formal(words: pl.Expr) -> pl.Expr:
    """Whether the words of a name are a title and a surname."""
    return (words.list.len() == 2) & words.list.first().is_in(list(FORMAL))


def document_aliases(mentions: pl.DataFrame, names: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Rows of document_id, alias_key, title_key, rule for the documents of `mentions`, see `propose_aliases`.

    A surname, also after Mr or Dr, stands for the only person of the document who bears it, or, where the document
    names none in full and the word is known for a person's name, for the only one of the whole corpus. A given name
    stands for a full name of its own document that is named repeatedly. An abbreviation stands for what the document,
    or else only one name of the corpus, has before it in parentheses, or for the only name of the document whose
    initials fit.

    Args:
        names: what the keys of `mentions` stand for: title_key, stands_for, type.
    """
    roots = dict(names.select("title_key", "stands_for").iter_rows())
    types = dict(names.select("stands_for", "type").iter_rows())
    anywhere: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for short, name, kind in short_forms(names).iter_rows():
        anywhere[short, kind == "PERSON"].append(name)
    bodies = related_bodies(relationships, roots, types)
    everywhere: dict[str, set[str]] = defaultdict(set)
    for (_, root), others in bodies.items():
        everywhere[root] |= others
    documents: dict[str, _Document] = defaultdict(_Document)
    for document, key, person, n, units, in_header in (
        mentions.group_by("document_id", "title_key", person=pl.col("type") == "PERSON")
        .agg(pl.len(), pl.col("text_unit_id").drop_nulls().unique(), pl.col("in_header").all())
        .iter_rows()
    ):
        if key:
            documents[document].add(key, roots[key], bool(person), n, units, in_header)
    rows: list[tuple[str, str, str, str]] = []
    for name, document in documents.items():
        bearers, by_given_name, acronyms = _full_forms(document.keys, types)
        ends = {key.rpartition(" ")[2] for key in document.keys if " " in key and types[key] == "NAME"}
        for short in document.keys:
            title, _, last = short.rpartition(" ")
            if title and (title not in FORMAL or types[short] != "PERSON"):
                continue
            here = bearers.get(last, [])
            target, rule = "", "surname"
            if here and types[short] in ("PERSON", "NAME"):
                target = document.bearer(_only(here), short, True)
            elif types[short] == "PERSON" and last not in ends:
                target = document.bearer(_only(anywhere.get((last, True), [])), short, False)
            if not target and not here and types[short] == "PERSON":
                full = _only(by_given_name.get(short, []))
                target, rule = full if document.counts[full] > 1 else "", "given_name"
            if document.tells_apart(short, target) or _differ(bodies.get((name, short)), everywhere[target]):
                target, here = "", [target]
            if not target and not here:
                stated = document.stated.get(short)
                candidates = stated or acronyms(short) or anywhere.get((short, False), [])
                target, rule = _only([full for full in candidates if _may_be_one(types[short], types[full])]), "acronym"
                target = target if stated or not document.units[short] & document.units[target] else ""
            if target and target != short:
                rows += [(name, key, target, rule) for key in sorted(document.keys[short])]
    schema = dict.fromkeys(("document_id", "alias_key", "title_key", "rule"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def related_bodies(
    relationships: pl.DataFrame, roots: Mapping[str, str], types: Mapping[str, str]
) -> dict[tuple[str, str], set[str]]:
    """By document and name, the organizations and places that it belongs to or acts on, as a model says."""
    bodies: dict[tuple[str, str], set[str]] = defaultdict(set)
    stated = relationships.filter("by_model").select("document_id", "source_key", "target_key")
    for document, *pair in stated.iter_rows():
        source, target = (roots.get(key, key) for key in pair)
        if types.get(target) in _BODIES:
            bodies[document, source].add(target)
    return bodies


def _differ(bodies: set[str] | None, others: set[str]) -> bool:
    """Whether both are named and none of one is, in a shorter or longer form, one of the other."""
    if not bodies or not others:
        return False
    return not any(f"{a} ".startswith(f"{b} ") or f"{b} ".startswith(f"{a} ") for a in bodies for b in others)


@dataclass(slots=True)
class _Document:
    """The names in a document, grouped by their key in the whole index.

    Attributes:
        keys: as they are mentioned.
        counts: mentions.
        people: what is mentioned as a person.
        stated: what stands before an abbreviation in parentheses.
        units: the text units in which a model lists the name.
        in_header: names that stand only in the header of a mail.
    """

    keys: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)
    stated: dict[str, list[str]] = field(default_factory=dict)
    units: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    in_header: dict[str, bool] = field(default_factory=dict)

    def add(self, key: str, root: str, person: bool, n: int, units: Iterable[str], in_header: bool) -> None:
        self.keys[root].add(key)
        self.counts[root] += n
        self.units[root].update(units)
        self.in_header[root] = in_header and self.in_header.get(root, True)
        if person:
            self.people.add(root)
        if key.endswith(")") and (split := split_abbreviation(key)):
            self.stated[split[1]] = sorted({*self.stated.get(split[1], []), root})

    def tells_apart(self, short: str, full: str) -> bool:
        """Whether a model's answer lists both names, or the full one is only a sender or receiver of a mail."""
        return bool(self.units[short] & self.units[full]) or self.in_header.get(full, False)

    def bearer(self, full: str, short: str, is_here: bool) -> str:
        """Return the full name that a surname stands for, if one of them is evidently a person's; or "".

        In the document itself it suffices that the surname is not the more frequent one: a stray word before a name
        makes a longer name, too.
        """
        evident = short in self.people or full.split(" ")[0] in word_list("given_names")
        return full if evident or (is_here and self.counts[short] <= self.counts[full]) else ""


def _may_be_one(short: str, full: str) -> bool:
    """Whether an abbreviation of one type can stand for a name of the other."""
    return short == full or "NAME" in (short, full)


def _full_forms(
    keys: Iterable[str], types: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, list[str]], Callable[[str], list[str]]]:
    """Return the document's names of several words: people by surname and by given name, and others by abbreviation."""
    bearers: dict[str, list[str]] = defaultdict(list)
    by_given_name: dict[str, list[str]] = defaultdict(list)
    others: dict[int, list[str]] = defaultdict(list)
    for key in keys:
        words = key.split()
        if len(words) < 2 or (len(words) == 2 and words[0] in FORMAL):
            continue
        if types[key] == "PERSON" and "of" not in words:
            if words[-1] not in NEVER_SURNAMES:
                bearers[words[-1]].append(key)
            if words[0] not in TITLED:
                by_given_name[words[0]].append(key)
        elif types[key] != "PERSON":
            for length in count_initials(key):
                others[length].append(key)

    def abbreviated(short: str) -> list[str]:
        if len(short) < MIN_LENGTH:
            return []
        return [key for key in others.get(len(short.replace(".", "")), ()) if initials_fit(short, key)]

    return bearers, by_given_name, abbreviated


def _only(names: Sequence[str]) -> str:
    """Return the one name, unless it is none, several, or a woman's by her husband's surname ("mrs cratchit")."""
    return names[0] if len(names) == 1 and names[0].split()[0] not in TITLED else ""
