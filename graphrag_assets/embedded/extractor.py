"""Entities, relationships and claims of a text unit without a model: the extraction of the embedded default.

Proper names and specific noun phrases are entities, two of them in one sentence a relationship, a dated or
quantified sentence about one a claim. Everything is a function of the text unit, and of its
document's title and language.
"""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, takewhile
from typing import NamedTuple

from graphrag_assets.contracts.records import ClaimRecord, EntityRecord, RelationshipRecord, UnitExtraction
from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.claim_sentences import claims_in
from graphrag_assets.embedded.concepts import concepts_in, phrase_counts
from graphrag_assets.embedded.foreign_names import names_by_sentence
from graphrag_assets.embedded.names import (
    Mention,
    attest,
    decided_kinds,
    names_in,
    names_in_heading,
)
from graphrag_assets.embedded.relations import predicate
from graphrag_assets.embedded.tagging import (
    FILE_NAME,
    TaggedSentence,
    raw_sentences,
    singular,
    tagged,
    word_list,
)
from graphrag_assets.embedded.title_names import title_names, type_of_correspondent
from graphrag_assets.embedded.wording import DEFINES, begins_with_anaphor, self_contained, shortened
from graphrag_assets.text.languages import CASELESS, UNKNOWN
from graphrag_assets.text.words import title_key

EXTRACTOR = "embedded/nlp-8"
"""Extractor of facts by the embedded default; `EXTRACTOR+…` where claims are another's, or off, and `…+EXTRACTOR` where
only claims are the embedded default's."""
MAX_ENTITIES_PER_SENTENCE = 12
MAX_DESCRIPTION = 400
_WEAKEST = 1 + 10 * cues.ENOUGH
_OPENING = 400  # characters in which a text says what it is about
_Sentences = list[tuple[TaggedSentence, list[Mention], list[Mention]]]
_FARTHEST_LEAD = 8
_REPEATED = 2  # times in a column of a table
_LEVEL = "(?:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical|severe)"
_LOG_LINE = re.compile(  # a time, and a level or the number of a process
    rf"(?=.{{0,60}}?\d\d[:.]?\d\d[:.]?\d\d).{{0,90}}?(?:\d[\d\W]*(?i:{_LEVEL})\b|\b{_LEVEL.upper()}\b|\S\[\d+\]:)"
)
_FEMALE_TITLES = ("mrs", "miss", "lady", "queen", "king", "madame", "aunt", "mistress")
_LESS_TELLING = re.compile(r"(?:but|and|so|then|there|here|i|we|you|my|our|your)\b|[\"'(]", re.IGNORECASE)


def extract_unit(
    text: str,
    title: str = "",
    language: str = "en",
    correspondents: Sequence[str] = (),
) -> UnitExtraction:
    """Everything that the embedded default finds in a text unit.

    `title` and `language` (ISO 639-1) are the document's, `correspondents` those of a mail. What the title names
    is an entity of the unit, as is what only the title, a heading or the mail's header names. In languages other than
    English there are names, relationships and dated statements only, in those without capital letters only those of
    mail headers.
    """
    senders = [EntityRecord(name, type_of_correspondent(name), "", 0) for name in correspondents]
    if language in CASELESS:
        return UnitExtraction(senders)
    english = language == "en" or (language == UNKNOWN and _is_latin(text))
    about = title_names(title, text[:_OPENING], language if not english else "en") if title else []
    name = about[-1] if about else ""
    if english:
        sentences = _english(text, title, name)
    else:
        sentences = [(sentence, names, []) for sentence, names in names_by_sentence(text, language, title)]
    above = [name for sentence, names, _ in sentences if sentence.heading for name in names]
    sentences = [(sentence, [] if sentence.heading else names, concepts) for sentence, names, concepts in sentences]
    things = _things(sentences)
    in_order = [sentence for sentence, _, _ in sentences]
    named = []
    for number, (sentence, names, concepts) in enumerate(sentences):
        if mentions := _resolved(names + concepts, things):
            extract = "" if _is_interjection(sentence, mentions) else _extract(in_order, number, mentions)
            named.append(_NamedIn(sentence, mentions, extract))
    claims = _claims(named, text, english)
    unit = _with_title(about, named, UnitExtraction(_entities(named), _relationships(named, english), claims))
    more = [EntityRecord(mention.title, mention.type, "", 1) for mention in above]
    if english and not (name and name.casefold() in text.casefold()):
        more += _of_title(title)
    named_keys = {*things, *(title_key(entity.title) for entity in unit.entities)}
    unnamed = {key: one for one in reversed(more + senders) if (key := title_key(one.title)) not in named_keys}
    return replace(unit, entities=unit.entities + list(unnamed.values()))


def _of_title(title: str) -> list[EntityRecord]:
    """Return the names within a title, such as the subject of a mail."""
    seen = attest((), title)
    headings = [
        (heading, decided_kinds(heading, seen))
        for heading in map(tagged, raw_sentences("" if FILE_NAME.search(title) else f"# {title}"))
    ]
    names = [mention for heading, kinds in headings for mention in names_in_heading(heading, kinds, seen)]
    return [EntityRecord(mention.title, mention.type, "", 0) for mention in names]


def _english(text: str, title: str, name: str) -> _Sentences:
    """Return the sentences with their names and concepts; `name` is what the title names."""
    sentences = []
    of_text = list(map(tagged, raw_sentences(text)))
    seen = attest(of_text, title)
    counts = phrase_counts(of_text)
    for sentence in of_text:
        kinds = decided_kinds(sentence, seen)
        names = names_in_heading(sentence, kinds, seen) if sentence.heading else names_in(sentence, kinds, seen, name)
        sentences.append((sentence, names, concepts_in(sentence, kinds, names, counts)))
    sentences = _without_words_of_logs(sentences)
    return _without_cell_values(sentences) if "|" in text else sentences


def _without_words_of_logs(sentences: _Sentences) -> _Sentences:
    """Return the sentences without untyped names and concepts of log lines, which say level, component and message."""
    lines = {sentence.paragraph for sentence, _, _ in sentences if _LOG_LINE.match(sentence.text)}
    return [
        (sentence, [name for name in names if name.evidence >= cues.ENOUGH and name.type != cues.NAME], [])
        if sentence.paragraph in lines
        else (sentence, names, concepts)
        for sentence, names, concepts in sentences
    ]


def _without_cell_values(sentences: _Sentences) -> _Sentences:
    """Return the sentences without single words of table rows that are labels, or repeat in a column of the table.

    A word that has a type, or that the prose of the text unit names, is a name wherever it stands.
    """
    in_prose = {name.title for sentence, names, _ in sentences if not _is_row(sentence) for name in names}
    columns = Counter(
        (column, name.title)
        for sentence, names, _ in sentences
        if _is_row(sentence)
        for column, name in {(_column(sentence, name), name) for name in names}
    )

    def is_name(sentence: TaggedSentence, mention: Mention) -> bool:
        one_word = mention.last - mention.first == 1
        if not one_word or mention.type != cues.NAME or mention.title in in_prose:
            return True
        if sentence.words[mention.last : mention.last + 1] == [":"]:
            return False
        return columns[_column(sentence, mention), mention.title] < _REPEATED

    return [
        (sentence, [name for name in names if not _is_row(sentence) or is_name(sentence, name)], concepts)
        for sentence, names, concepts in sentences
    ]


def _is_row(sentence: TaggedSentence) -> bool:
    return "|" in sentence.kinds


def _column(sentence: TaggedSentence, mention: Mention) -> int:
    return sentence.kinds[: mention.first].count("|")


def _is_latin(text: str) -> bool:
    letters = [character for character in text[:_OPENING] if character.isalpha()]
    return sum(letter < "\u0250" for letter in letters) * 2 >= len(letters)


class _NamedIn(NamedTuple):
    """A sentence with the entities that it names, and the extract that quotes it."""

    sentence: TaggedSentence
    mentions: list[Mention]
    extract: str


def _extract(sentences: Sequence[TaggedSentence], number: int, mentions: Sequence[Mention]) -> str:
    """Return sentence as a description quotes it, led by another one of its paragraph if it is not self-contained."""
    sentence = sentences[number]
    if not begins_with_anaphor(sentence.text) or _opens_with(mentions, sentence):
        return shortened(sentence.text, MAX_DESCRIPTION)
    before = takewhile(
        lambda previous: previous.paragraph == sentence.paragraph and not previous.heading,
        reversed(sentences[max(number - _FARTHEST_LEAD, 0) : number]),
    )
    return self_contained(sentence.text, (previous.text for previous in before), MAX_DESCRIPTION)


def _is_interjection(sentence: TaggedSentence, mentions: Sequence[Mention]) -> bool:
    """Whether a line of a dialogue says nothing: a speaker's name, a colon and words without a verb ("Yeah, 100%.")."""
    speaker = mentions[0]
    said = speaker.last + 1
    return (
        speaker.first == 0
        and speaker.type in (cues.PERSON, cues.NAME)
        and sentence.words[speaker.last : said] == [":"]
        and sentence.text[-1] in ".!?"
        and "v" not in sentence.kinds[said:]
    )


def _opens_with(mentions: Sequence[Mention], sentence: TaggedSentence) -> bool:
    """Whether the sentence begins with a name, such as "They Flew Alone"."""
    return any(m.first == 0 or (m.first == 1 and sentence.kinds[0] in 'q"') for m in mentions)


def _with_title(about: Sequence[str], sentences: Sequence[_NamedIn], unit: UnitExtraction) -> UnitExtraction:
    """Return `unit` with the subject of the title if no sentence names it.

    Where the first name of the text has a word of the title's ("Paul Michael Gross", titled "Paul Gross"), its sentence
    describes what the title names, and relates the two.
    """
    if not about:
        return unit
    named = {_key(entity.title, cues.NAME) for entity in unit.entities}
    missing = [name for name in about if title_key(name) not in named]
    if not missing:
        return unit
    description, relationships = next((e.description for e in unit.entities if e.title == about[-1]), ""), []
    if sentences and len(missing) == len(about):
        first = min(sentences[0].mentions, key=lambda mention: mention.first)
        if not set(title_key(first.title).split()).isdisjoint(title_key(about[-1]).split()):
            description = sentences[0].extract
            relationships = [RelationshipRecord(about[-1], first.title, description)]
    entities = [EntityRecord(name, cues.type_of_title(name.split())[0], description, 0) for name in missing]
    return UnitExtraction(unit.entities + entities, unit.relationships + relationships, unit.claims)


@dataclass(slots=True)
class _Thing:
    """One entity of the unit while its mentions are gathered.

    Attributes:
        types: the evidence of each type.
        hints: mentions by the type that they hint at, and as concepts.
    """

    titles: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    hints: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        return _most_frequent(self.titles)

    @property
    def type(self) -> str:
        if not self.types:
            return next((kind for kind in (cues.PERSON, cues.CONCEPT) if self.hints[kind]), cues.NAME)
        kind = _most_frequent(self.types)
        contradicted = self.hints[cues.NAME] * _WEAKEST + self.types[cues.NAME] >= self.types[kind]
        return cues.NAME if kind == cues.GEO and contradicted else kind


def _most_frequent(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return min(counts, key=lambda name: (-counts[name], name))


@functools.lru_cache(maxsize=1 << 16)
def _key(title: str, kind: str) -> str:
    """Return the key of a title; of a concept in the singular."""
    if kind == cues.CONCEPT:
        *modifiers, head = title_key(title).split() or [""]
        return " ".join([*modifiers, singular(head)])
    return title_key(title)


def _things(sentences: _Sentences) -> dict[str, _Thing]:
    """Return the unit's entities by key; short forms point at the same thing as the one full form they stand for."""
    things: dict[str, _Thing] = defaultdict(_Thing)
    for _, names, concepts in sentences:
        for mention in (*names, *concepts):
            thing = things[_key(mention.title, mention.type)]
            thing.titles[mention.title] += 1
            if mention.evidence >= cues.ENOUGH:
                thing.types[mention.type] += 1 + 10 * mention.evidence
            elif mention.evidence == cues.HINT or mention.type == cues.CONCEPT:
                thing.hints[mention.type] += 1
    things.pop("", None)
    for key, thing in things.items():
        first = things.get(key.split(" ")[0])
        if first and first.types and first.type != cues.PERSON:
            thing.hints.pop(cues.PERSON, None)  # "Evernote Mac" beside "in Evernote"
    return _with_short_forms(dict(things))


def _with_short_forms(things: dict[str, _Thing]) -> dict[str, _Thing]:
    """Return a word that ends, or as a given name begins, one person's name only in the unit means that person.

    A more frequent word means a longer name only if that is evidently a person's: a stray word before a name makes a
    longer name, too.
    """
    by_word: dict[str, set[str]] = defaultdict(set)
    for key, thing in things.items():
        words = key.split()
        if len(words) > 1 and thing.type == cues.PERSON and "of" not in words and words[0] not in _FEMALE_TITLES:
            by_word[words[-1]].add(key)
            if words[0] in word_list("given_names"):
                by_word[words[0]].add(key)
    for word, keys in by_word.items():
        short = things.get(word)
        forms = {(key.split()[0], key.split()[-1]) for key in keys}  # with and without middle names
        known_place = short and short.type == cues.GEO and short.types[cues.GEO] > 30
        if short and len(forms) == 1 and short.type in (cues.PERSON, cues.NAME, cues.GEO) and not known_place:
            name = min(keys, key=lambda key: (-things[key].titles.total(), key))
            full = things[name]
            evident = full.types or short.type == cues.PERSON or name.split()[0] in word_list("given_names")
            if not evident and short.titles.total() > full.titles.total():
                continue
            full.types.update({cues.PERSON: short.types.total()})
            things[word] = full
    return things


def _resolved(mentions: Iterable[Mention], things: dict[str, _Thing]) -> list[Mention]:
    """Mentions under the titles and types of their things, in order of the sentence."""
    ordered = (
        (mention, things.get(_key(mention.title, mention.type))) for mention in sorted(mentions, key=lambda m: m.first)
    )
    return [replace(mention, title=thing.title, type=thing.type) for mention, thing in ordered if thing]


def _entities(sentences: Sequence[_NamedIn]) -> list[EntityRecord]:
    """One record per entity, described by the extract that says best what it is."""
    best: dict[str, tuple[float, str]] = {}
    named_in: Counter[str] = Counter()
    types: dict[str, str] = {}
    for number, (sentence, mentions, extract) in enumerate(sentences):
        named_in.update({m.title for m in mentions})
        for rank, mention in enumerate(mentions):
            types[mention.title] = mention.type
            score = _telling(sentence, mention, rank) - number / 1000 if extract else -math.inf
            if mention.title not in best or score > best[mention.title][0]:
                best[mention.title] = (score, extract)
    return [EntityRecord(name, kind, best[name][1], named_in[name]) for name, kind in types.items()]


def _telling(sentence: TaggedSentence, mention: Mention, rank: int) -> float:
    """How well a sentence describes an entity that it names."""
    text = sentence.text
    begin = sentence.offsets[mention.first]
    score = 3.0 if begin < 30 else 2.0 - min(begin / 100, 2.0)
    score += 1.0 if rank == 0 else 0.0
    score += 2.5 if DEFINES.match(text, sentence.end_of(mention.last)) else 0.0
    score -= 1.5 if _LESS_TELLING.match(text) else 0.0
    score -= 2.0 if begins_with_anaphor(text) else 0.0
    score -= 0.0 if text[-1] in ".!?\"'" else 2.0
    return score - (2.0 if len(text) < 40 else 0.0) - min(max(len(text) - 300, 0) / 200, 3.0)


def _relationships(sentences: Sequence[_NamedIn], typed: bool) -> list[RelationshipRecord]:
    """One record per pair of entities that share a sentence; strength is the number of such sentences.

    `typed`: look for a predicate in the words between them.
    """
    weight = Counter(m.title for _, mentions, _ in sentences for m in mentions)
    together: dict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    types: dict[tuple[str, str], str] = {}
    for number, (sentence, mentions, _) in enumerate(sentences):
        first = {m.title: m for m in reversed(mentions)}
        if len(first) < 2:
            continue
        chosen = sorted(first.values(), key=lambda m: (m.type == cues.CONCEPT, -weight[m.title], m.first))
        chosen_titles = {m.title for m in chosen[:MAX_ENTITIES_PER_SENTENCE]}
        for left, right in combinations(
            [m.title for m in sorted(first.values(), key=lambda m: m.first) if m.title in chosen_titles], 2
        ):
            pair = (left, right) if (right, left) not in together else (right, left)
            together[pair].append((left, right, number))
        for source, target, name in _stated(sentence, mentions) if typed else ():
            pair = (source, target) if (source, target) in together else (target, source)
            if pair in together and pair not in types:
                types[pair] = name
                together[pair].insert(0, (source, target, number))
    records = []
    for pair, shared in together.items():
        stated = pair in types
        source, target, best = shared[0] if stated else min(shared, key=lambda s: _suits(sentences[s[2]], s[2]))
        strength = len(shared) - stated
        records.append(
            RelationshipRecord(source, target, sentences[best].extract, float(strength), types.get(pair, ""))
        )
    return records


def _suits(one: _NamedIn, number: int) -> tuple[bool, bool, bool, int, int]:
    """Order of sentences as descriptions of a pair: complete ones, not too short, then the shortest."""
    text = one.extract
    return not text, one.sentence.text[-1] not in ".!?\"'", len(text) < 30, len(text), number


def _stated(sentence: TaggedSentence, mentions: Sequence[Mention]) -> Iterable[tuple[str, str, str]]:
    """Predicates between neighbors: (agent, other, predicate)."""
    for i, (left, right) in enumerate(pairwise(mentions)):
        if left.title == right.title or left.last > right.first or right.first - left.last > 12:
            continue
        between = sentence.text[sentence.end_of(left.last) : sentence.offsets[right.first]]
        crowded = any(left.first - before.last < 3 for before in mentions[:i][-1:])
        crowded |= any(after.first - right.last < 3 for after in mentions[i + 2 :][:1])
        if between == ", " and (crowded or title_key(left.title) in word_list("places:countries")):
            continue  # a list, not a place inside another place
        name, reverse = predicate(between, left.type, right.type)
        if name:
            yield (right.title, left.title, name) if reverse else (left.title, right.title, name)


def _claims(sentences: Sequence[_NamedIn], text: str, english: bool) -> list[ClaimRecord]:
    claims: dict[ClaimRecord, None] = {}
    for sentence, mentions, extract in sentences:
        if _is_interjection(sentence, mentions):
            continue
        source, description = text[sentence.start : sentence.end], extract or shortened(sentence.text, MAX_DESCRIPTION)
        claims |= dict.fromkeys(claims_in(sentence, source, mentions, description, english))
    return list(claims)
