"""Proper names in languages other than English, by capitals, stop words and what the text unit itself shows.

A capital within a sentence is evidence of a name, unless the unit has the word in lower case. Where a sentence begins,
it is none: a word there is a name only when it is one elsewhere in the unit, or a known given name or place. German
writes all nouns with capitals: there, adjacent words are names, and single ones only with further
evidence.
"""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.names import Mention
from graphrag_assets.embedded.tagging import (
    NAME_WITH_SIGNS,
    RawSentence,
    TaggedSentence,
    clean,
    has_signs,
    is_structure_word,
    is_upper_case,
    raw_sentences,
    word_list,
)
from graphrag_assets.text.inflections import is_german_adjective, russian_root, with_surname
from graphrag_assets.text.languages import stem, stop_words

_INFLECTING = frozenset(("de", "ru", "pl", "sr", "el", "fi", "et", "hu", "lt", "tr"))
"""Languages whose names have cases. In others "Julio" and "Julia", of one stem, would become one."""

_WORDS = (
    r"(?:[^\W\d_]\.){2,}|\b[^\W\d_]\.(?=\s?[^\W\d_])|\b(?:[ldjmtnscLDJMTNSC]|[Qq]u)'(?=\w)"
    r"|[^\W\d_]\w*(?:[-']\w+)*|\d+(?:[.,:]\d+)*|--+|\.\.\.|\S"
)
_TOKEN = re.compile(_WORDS)
_TOKEN_WITH_SIGNS = re.compile(rf"{NAME_WITH_SIGNS}|{_WORDS}")
_ENDS = (".", "!", "?", ":", "...", "|", "…")
_QUOTES = ('"', "'", "(", "[", "-", "–", "—", "--")
_TITLES = word_list("foreign_words:titles")
_ORGANIZATIONS = word_list("foreign_words:organizations")
_PLACES = word_list("foreign_words:places")
_GIVEN_NAMES = word_list("foreign_words:given names") | word_list("given_names")
_PARTICLES = word_list("foreign_words:particles")
_DETERMINERS = word_list("foreign_words:german determiners")
_PREPOSITIONS = word_list("foreign_words:german prepositions")
_CLASS_NOUNS = word_list("foreign_words:german class nouns")
_NO_NAMES = word_list("foreign_words:not names")
_SLAVIC_ADJECTIVE = re.compile(r"(?:ск|н)(?:ая|ое|ие|ого|ой|ому|ом|ую|их|им|ими|ые|ых|ым|ыми)$")
_OF_A_CLASS, _OF_A_LIST = 1, 5
"""The evidence of names after a class noun, and of those that lists know."""
_LISTING = ("und", "oder", "sowie", ",")
_FEMININE_CASES = ("der", "einer", "zur", "dieser", "ihrer", "seiner", "unserer")


def names_by_sentence(text: str, language: str, title: str = "") -> list[tuple[TaggedSentence, list[Mention]]]:
    """Return the sentences of a text unit with the names in each, in order."""
    sentences = [_tagged(raw) for raw in raw_sentences(text)]
    unit = _Unit(language, frozenset(title.lower().split()))
    for sentence in sentences:
        unit.learn(sentence)
    if language == "de":  # the parts of longer names are names by themselves
        for sentence in sentences:
            for mention in unit.names(sentence):
                several = mention.last - mention.first > 1
                if mention.type == cues.PERSON or (mention.type == cues.NAME and (several or mention.evidence)):
                    unit.sure.update(unit.stem(word.lower()) for word in sentence.words[mention.first : mention.last])
    by_sentence = [(sentence, list(unit.names(sentence))) for sentence in sentences]
    return unit.in_one_form(by_sentence) if language in _INFLECTING else by_sentence


@functools.cache
def listed_forms() -> dict[str, str]:
    """Return the Russian given names and places of the lists, as they are written, by root; of one root only one."""
    words: dict[str, set[str]] = defaultdict(set)
    for word in _GIVEN_NAMES | _PLACES:
        if not word.isascii() and word[0] >= "а":
            words[russian_root(word)].add(word)
    return {root: next(iter(forms)).title() for root, forms in words.items() if len(forms) == 1}


def _tagged(raw: RawSentence) -> TaggedSentence:
    """Kinds: N capital, W capital where any word has one, w other word, # number; other tokens are themselves."""
    text = clean(raw.text)
    tokens = list((_TOKEN_WITH_SIGNS if has_signs(text) else _TOKEN).finditer(text))
    words, offsets = [token.group() for token in tokens], [token.start() for token in tokens]
    kinds, begins = "", True
    for word in words:
        kind = word[0] if len(word) == 1 and not word.isalnum() else "."
        if word[0].isdigit():
            kind = "#"
        elif word[0].isalpha():
            kind = "w" if not word[0].isupper() else "W" if begins else "N"
        begins = word in _ENDS or (begins and word in _QUOTES)
        kinds += kind
    heading = raw.heading or is_upper_case([word for word in words if word[0].isalpha()])
    return TaggedSentence(raw.start, raw.end, text, words, offsets, kinds, heading, raw.paragraph)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a text unit shows of its words, all as stems.

    Attributes:
        title: lower-case words of the document's title.
        forms: words with a capital, as they are.
        sure: words that have a capital within a sentence; in German those of a longer name.
        common: words in lower case; German words in the position of common nouns.
        bare: German words that occur alone and without a determiner; per occurrence, whether after "in" or the like.
    """

    language: str
    title: frozenset[str]
    forms: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)
    common: set[str] = field(default_factory=set)
    bare: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def stem(self, lower: str) -> str:
        return stem(lower, self.language)

    def learn(self, sentence: TaggedSentence) -> None:
        """Collect what a sentence shows."""
        for i, (word, kind) in enumerate(zip(sentence.words, sentence.kinds, strict=True)):
            lower = word.lower()
            if kind in "NW":
                self.forms.add(lower)
            if kind == "w" and not sentence.heading:
                self.common.add(self.stem(lower))
            elif kind != "N" or sentence.heading or lower in stop_words(self.language) | _NO_NAMES:
                continue
            elif self.language != "de":
                self.sure.add(self.stem(lower))
            elif _is_german_noun(sentence.words, sentence.kinds, i):
                self.common.add(self.stem(lower))
            elif sentence.kinds[i - 1] != "N" and sentence.kinds[i + 1 : i + 2] != "N":
                self.bare[self.stem(lower)].append(sentence.words[i - 1] in _PREPOSITIONS)

    def names(self, sentence: TaggedSentence) -> Iterator[Mention]:
        """Yield the names of a sentence, in order; of a heading those that are evident."""
        words, kinds = sentence.words, sentence.kinds
        first = last = previous = 0
        of_class = False  # after a class noun: "die Länder Niederfeld und Oberfeld"
        silent = sentence.heading and is_upper_case([word for word in words if word[0].isalpha()])
        while not silent and first < len(words):
            if not self._begins_name(words, kinds, first):
                first += 1
                continue
            last = self._end(words, kinds, first)
            of_class = of_class and " ".join(words[previous:first]) in _LISTING
            mention = self._mention(sentence, first, last, of_class)
            if mention and (not sentence.heading or mention.evidence or last - first > 1 or kinds[first - 1] == "w"):
                yield mention
                of_class = mention.evidence == _OF_A_CLASS
            first = previous = last

    def in_one_form(
        self, named: list[tuple[TaggedSentence, list[Mention]]]
    ) -> list[tuple[TaggedSentence, list[Mention]]]:
        """Return the names with each word in the form that the unit has most often ("Ивана Петрова": "Иван Петров").

        A given name or a place has the form that the lists have, a German adjective that of the nominative.
        """
        if self.language == "de":
            named = [(sentence, [_with_nominative(sentence, name) for name in names]) for sentence, names in named]
        forms: dict[str, Counter[str]] = defaultdict(Counter)
        for word in (word for _, mentions in named for mention in mentions for word in mention.title.split()):
            forms[self._root(word)][word] += 1
        forms_of_lists = listed_forms() if self.language == "ru" else {}
        best = {
            root: forms_of_lists.get(root)
            or min(words, key=lambda word: (word.lower() not in _GIVEN_NAMES, -words[word], len(word), word))
            for root, words in forms.items()
        }

        def in_best_form(mention: Mention) -> Mention:
            words = mention.title.split()
            adjective = self.language == "de" and len(words) > 1 and is_german_adjective(words[0])
            in_form = [word if word.lower() in _GIVEN_NAMES else best[self._root(word)] for word in words]
            if adjective:
                in_form[0] = words[0]
            if self.language == "ru" and len(in_form) > 1 and in_form[0].lower() in _GIVEN_NAMES:
                in_form[-1] = with_surname(in_form[0], in_form[-1])
            kind = mention.type if mention.type != cues.NAME else _type_of([word.lower() for word in in_form], False)
            evidence = mention.evidence if kind == mention.type else _OF_A_LIST
            return replace(mention, title=" ".join(in_form), type=kind, evidence=evidence)

        return [(sentence, list(map(in_best_form, mentions))) for sentence, mentions in named]

    def _root(self, word: str) -> str:
        return russian_root(word.lower()) if self.language == "ru" else self.stem(self.stem(word.lower()))

    def _begins_name(self, words: Sequence[str], kinds: str, i: int) -> bool:
        lower, word = words[i].lower(), words[i]
        if kinds[i] not in "NW" or len(lower) < 2 or lower in _NO_NAMES:
            return False
        if is_structure_word(word):
            return False
        followed = kinds[i + 1 : i + 2] == "N"
        if lower in _TITLES:
            return followed or words[i + 1 : i + 2] == ["."]
        if lower in stop_words(self.language):
            return kinds[i] == "N" and followed and self.language != "de"  # "Le Monde"
        if lower in _GIVEN_NAMES or lower in _PLACES or (followed and lower in _ORGANIZATIONS):
            return True
        key = self.stem(lower)
        if self.language in ("ru", "uk", "bg") and _SLAVIC_ADJECTIVE.search(lower) and kinds[i + 1 : i + 2] == "w":
            return False  # "Московском университете"
        if kinds[i] == "W":
            return (key in self.sure or lower in self.title) and key not in self.common
        return self.language == "de" or key not in self.common

    def _end(self, words: Sequence[str], kinds: str, first: int) -> int:
        """Return the end of the run of capitals, with particles between them ("de la Cruz")."""
        last = first + 1
        if self._is_genitive(words[first]):
            return last  # "Neumanns Bruder"
        while True:
            ahead = last
            while ahead - last < 2 and kinds[ahead : ahead + 1] == "w" and words[ahead] in _PARTICLES:
                ahead += 1
            before = words[last - 1].lower()
            if ahead > last and self.language == "de" and before not in _GIVEN_NAMES | _PLACES:
                return last  # "Kinder von Anna"
            is_place = before in _PLACES or listed_forms().get(self._root(before), "").lower() in _PLACES
            if is_place and words[ahead : ahead + 1] and words[ahead].lower() in _GIVEN_NAMES:
                return last  # "В Москве Анна Каренина …"
            abbreviated = words[last : last + 1] == ["."] and before in _TITLES
            if not abbreviated and (kinds[ahead : ahead + 1] != "N" or words[ahead].lower() in _NO_NAMES):
                return last
            last = ahead + 1

    def _mention(self, sentence: TaggedSentence, first: int, last: int, of_class: bool) -> Mention | None:
        words, kinds = sentence.words, sentence.kinds
        while self.language == "de" and last - first > 1 and words[first].lower() in _CLASS_NOUNS:
            first, of_class = first + 1, True
        titled = first > 0 and kinds[first - 1] == "w" and words[first - 1].lower() in _TITLES
        while first < last and (words[first].lower() in _TITLES or words[first] == "."):
            titled = True
            first += 1
        if first == last:
            return None
        kind = _type_of([word.lower() for word in words[first:last]], titled)
        if self.language == "de" and kind == cues.NAME and not of_class and not self._is_german_name(words[first:last]):
            return None
        end = sentence.end_of(last) - self._is_genitive(words[last - 1])
        evidence = _OF_A_CLASS if of_class else 0 if kind == cues.NAME else _OF_A_LIST
        return Mention(sentence.text[sentence.offsets[first] : end], first, last, kind, evidence)

    def _is_genitive(self, word: str) -> bool:
        """Whether a German word is a name with the ending of the genitive: the unit or a list has it without."""
        bare = word[:-1].lower()
        return (
            self.language == "de"
            and word.endswith("s")
            and (bare in self.forms or bare in _GIVEN_NAMES or bare in _PLACES)
            and self.stem(bare) not in self.common
        )

    def _is_german_name(self, words: Sequence[str]) -> bool:
        """Whether capitals that no list knows are a name and not nouns."""
        if any(word.isupper() and len(word) > 1 for word in words):
            return True
        head = words[-1].lower()
        key = self.stem(head)
        if key in self.common:
            return False
        bare = self.bare.get(key, [])
        return len(words) > 1 or key in self.sure or head in self.title or (len(bare) > 1 and any(bare))


def _is_german_noun(words: Sequence[str], kinds: str, i: int) -> bool:
    """Whether a word is in the position of a common noun: after a determiner, or a determiner and an adjective."""
    if kinds[i - 1] not in "wW" or kinds[i + 1 : i + 2] == "N":
        return False
    before = words[i - 1].lower()
    adjective = i > 1 and words[i - 2].lower() in _DETERMINERS and before.endswith(("e", "en", "er", "es", "em"))
    return before in _DETERMINERS or adjective


def _with_nominative(sentence: TaggedSentence, name: Mention) -> Mention:
    """Return a German name with its first adjective in the nominative: "der Europäischen Union" is the "Europäische
    Union".
    """
    word, _, rest = name.title.partition(" ")
    if not rest or not is_german_adjective(word):
        return name
    after_feminine = name.first > 0 and sentence.words[name.first - 1].lower() in _FEMININE_CASES
    inflected = word.endswith(("en", "em")) or (word.endswith("er") and after_feminine)
    return replace(name, title=f"{word[:-1]} {rest}") if inflected else name


def _type_of(lowers: Sequence[str], titled: bool) -> str:
    if len(lowers) > 1 and (lowers[0] in _ORGANIZATIONS or lowers[-1] in _ORGANIZATIONS):
        return cues.ORGANIZATION
    if titled or lowers[0] in _GIVEN_NAMES:
        return cues.PERSON
    is_place = lowers[0] in _PLACES and lowers[-1] in _PLACES
    return cues.GEO if is_place or " ".join(lowers) in word_list("places") else cues.NAME
