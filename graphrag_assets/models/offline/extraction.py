"""Entities, relationships and claims of a text unit without a model: the extraction of the embedded default.

Proper names and specific noun phrases are entities, two of them in one sentence a relationship, a dated or
quantified sentence about one a claim. Everything is a function of the text unit alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from graphrag_assets.models.offline import typing_cues as cues
from graphrag_assets.models.offline.claims import claims_in
from graphrag_assets.models.offline.concepts import concepts_in, phrase_counts
from graphrag_assets.models.offline.names import Mention, attest, decided_kinds, names_in
from graphrag_assets.models.offline.relations import predicate
from graphrag_assets.models.offline.tagging import (
    SHIP_PREFIXES,
    TaggedSentence,
    singular,
    tagged_sentences,
    word_list,
)
from graphrag_assets.models.records import ClaimRecord, EntityRecord, RelationshipRecord, UnitExtraction
from graphrag_assets.text import title_key

MAX_ENTITIES_PER_SENTENCE = 12
MAX_DESCRIPTION = 400


def extract_unit(text: str, title: str = "") -> UnitExtraction:
    """Everything that the embedded default finds in a text unit.

    `title` is the document's: a name that it gives is believed even where it only starts sentences.
    """
    tagged = list(tagged_sentences(text))
    seen = attest(tagged, title)
    counts = phrase_counts(tagged)
    at_sea = sum(word in counts for word in cues.NAUTICAL) > 2
    sentences = []
    for sentence in tagged:
        kinds = decided_kinds(sentence, seen)
        names = names_in(sentence, kinds, seen, at_sea)
        sentences.append((sentence, names, concepts_in(sentence, kinds, names, counts)))
    things = _things(sentences)
    found = [(sentence, _resolved(names + concepts, things)) for sentence, names, concepts in sentences]
    found = [(sentence, mentions) for sentence, mentions in found if mentions]
    return UnitExtraction(_entities(found), _relationships(found), _claims(found, text))


@dataclass(slots=True)
class _Thing:
    """One entity of the unit while its mentions are gathered."""

    titles: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        return min(self.titles, key=lambda title: (-self.titles[title], title))

    @property
    def type(self) -> str:
        return min(self.types, key=lambda name: (-self.types[name], name))


def _key(mention: Mention) -> str:
    """The key of a mention: of a ship without its prefix, of a concept in the singular."""
    if mention.type == cues.SHIP and mention.title.split(" ", 1)[0].lower().rstrip(".") in SHIP_PREFIXES:
        return title_key(mention.title.split(" ", 1)[-1])
    if mention.type == cues.CONCEPT:
        *modifiers, head = title_key(mention.title).split() or [""]
        return " ".join([*modifiers, singular(head)])
    return title_key(mention.title)


def _things(sentences: Sequence[tuple[TaggedSentence, list[Mention], list[Mention]]]) -> dict[str, _Thing]:
    """The unit's entities by key; short forms point at the same thing as the one full form they stand for."""
    things: dict[str, _Thing] = defaultdict(_Thing)
    for _, names, concepts in sentences:
        for mention in (*names, *concepts):
            thing = things[_key(mention)]
            thing.titles[mention.title] += 1
            # Ten times the evidence outweighs a lack of it: NAME decides only where nothing else is known.
            thing.types[mention.type] += 1 + 10 * mention.evidence if mention.type != cues.CONCEPT else 1
    things.pop("", None)
    return _with_short_forms(dict(things))


def _with_short_forms(things: dict[str, _Thing]) -> dict[str, _Thing]:
    """A word that ends, or as a given name begins, one person's name only in the unit means that person."""
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
        if short and len(forms) == 1 and short.type in (cues.PERSON, cues.NAME, cues.GEO) and not _placed(short):
            full = things[min(keys, key=lambda key: (-things[key].titles.total(), key))]
            full.types.update({cues.PERSON: short.types.total()})
            things[word] = full
    return things


_FEMALE_TITLES = ("mrs", "miss", "lady", "queen", "king", "madame", "aunt", "mistress")


def _placed(thing: _Thing) -> bool:
    return thing.type == cues.GEO and thing.types[cues.GEO] > 30


def _resolved(mentions: Iterable[Mention], things: dict[str, _Thing]) -> list[Mention]:
    """Mentions under the titles and types of their things, in order of the sentence."""
    resolved = []
    for mention in sorted(mentions, key=lambda m: m.first):
        thing = things.get(_key(mention))
        if thing:
            resolved.append(replace(mention, title=thing.title, type=thing.type))
    return resolved


_Found = Sequence[tuple[TaggedSentence, list[Mention]]]


def _entities(found: _Found) -> list[EntityRecord]:
    best: dict[str, tuple[float, str]] = {}
    named_in: Counter[str] = Counter()
    types: dict[str, str] = {}
    for number, (sentence, mentions) in enumerate(found):
        named_in.update({m.title for m in mentions})
        for rank, mention in enumerate(mentions):
            types[mention.title] = mention.type
            score = _telling(sentence, mention, rank) - number / 1000
            if mention.title not in best or score > best[mention.title][0]:
                best[mention.title] = (score, sentence.text)
    return [EntityRecord(name, kind, shortened(best[name][1]), named_in[name]) for name, kind in types.items()]


_DEFINES = re.compile(r"['\"]?(?:, (?:the|a|an|who|which|one) | (?:was|is|were|are|became) (?:a|an|the|one|born)? ?)")
_PRONOUN_FIRST = re.compile(
    r"(?:he|she|it|they|this|that|these|those|but|and|so|then|here|there)\b|[\"'(]", re.IGNORECASE
)


def _telling(sentence: TaggedSentence, mention: Mention, rank: int) -> float:
    """How well a sentence describes an entity that it names."""
    text = sentence.text
    begin = sentence.offsets[mention.first]
    after = sentence.offsets[mention.last - 1] + len(sentence.words[mention.last - 1])
    score = 3.0 if begin < 30 else 2.0 - min(begin / 100, 2.0)
    score += 1.0 if rank == 0 else 0.0
    score += 2.5 if _DEFINES.match(text, after) else 0.0
    score -= 1.5 if _PRONOUN_FIRST.match(text) else 0.0
    score -= 0.0 if text[-1] in ".!?\"'" else 2.0
    return score - (2.0 if len(text) < 40 else 0.0) - min(max(len(text) - 300, 0) / 200, 3.0)


def shortened(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """`text`, cut at a word and marked with "…" when longer than `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut).rstrip(" ,;:-") + "…"


def _relationships(found: _Found) -> list[RelationshipRecord]:
    """One record per pair of entities that share a sentence; strength is the number of such sentences."""
    weight = Counter(m.title for _, mentions in found for m in mentions)
    together: dict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    types: dict[tuple[str, str], str] = {}
    for number, (sentence, mentions) in enumerate(found):
        first = {m.title: m for m in reversed(mentions)}
        if len(first) < 2:
            continue
        chosen = sorted(first.values(), key=lambda m: (m.type == cues.CONCEPT, -weight[m.title], m.first))
        kept = {m.title for m in chosen[:MAX_ENTITIES_PER_SENTENCE]}
        for left, right in combinations(
            [m.title for m in sorted(first.values(), key=lambda m: m.first) if m.title in kept], 2
        ):
            pair = (left, right) if (right, left) not in together else (right, left)
            together[pair].append((left, right, number))
        for source, target, name in _stated(sentence, mentions):
            pair = (source, target) if (source, target) in together else (target, source)
            if pair in together and pair not in types:
                types[pair] = name
                together[pair].insert(0, (source, target, number))
    records = []
    for pair, shared in together.items():
        typed = pair in types
        source, target, best = shared[0] if typed else min(shared, key=lambda s: _suits(found[s[2]][0].text, s[2]))
        strength = len(shared) - typed
        text = shortened(found[best][0].text)
        records.append(RelationshipRecord(source, target, text, float(strength), types.get(pair, "")))
    return records


def _suits(text: str, number: int) -> tuple[bool, bool, int, int]:
    """Order of sentences as descriptions of a pair: complete ones, not too short, then the shortest."""
    return text[-1] not in ".!?\"'", len(text) < 30, len(text), number


def _stated(sentence: TaggedSentence, mentions: Sequence[Mention]) -> Iterable[tuple[str, str, str]]:
    """Predicates between neighbours: (agent, other, predicate)."""
    ends = [m.last for m in mentions]
    for i, (left, right) in enumerate(pairwise(mentions)):
        if left.title == right.title or left.last > right.first or right.first - left.last > 12:
            continue
        begin = sentence.offsets[left.last - 1] + len(sentence.words[left.last - 1])
        before = sentence.words[left.first - 1] if left.first else ""
        between = sentence.text[begin : sentence.offsets[right.first]]
        crowded = (i and left.first - ends[i - 1] < 3) or (
            i + 2 < len(mentions) and mentions[i + 2].first - right.last < 3
        )
        if between == ", " and (crowded or title_key(left.title) in word_list("places:countries")):
            continue  # a list, no place within a place
        name, reverse = predicate(between, left.type, right.type, before)
        if name:
            yield (right.title, left.title, name) if reverse else (left.title, right.title, name)


def _claims(found: _Found, text: str) -> list[ClaimRecord]:
    claims: dict[ClaimRecord, None] = {}
    for sentence, mentions in found:
        source_text = text[sentence.start : sentence.end]
        for claim in claims_in(sentence, source_text, mentions, shortened(sentence.text)):
            claims[claim] = None
    return list(claims)
