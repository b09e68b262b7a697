"""Finds proper names and concepts in tagged sentences, with evidence for their types."""

import bisect
import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.tagging import (
    FEMALE,
    NUMBERS,
    TaggedSentence,
    is_generic_noun,
    is_structure_word,
    known_word,
    lower_kind,
    singular,
    word_list,
    word_tag,
)
from graphrag_assets.text.languages import NAMES, stop_words

_RUN = re.compile(r"W?[NAEI]+")
_OF_A_NAME = re.compile("ot?[NAE]")
_FORMS_NO_NAME = (
    "VB", "VBP", "VBZ", "VBD", "RB", "RBR", "UH", "IN", "MD", "PRP", "WRB", "CC", "DT", "WP", "WDT", "CD", "EX", "TO",
    "PDT",
)  # fmt: skip
_NAME = re.compile(r"c*(?:[RE]*(?:I+d*)?[NA]|R(?=ot?[NAE]))(?:[Idc]*[NAE]|RN)*(?:I*R(?![NAEot]))?c*")
_QUOTED = re.compile(r"(?<=.)q([^q|.\"']{1,9})[,.]?[\"']")
_YEAR = re.compile(r"(?:1[0-9]|20)\d\d$")
_NUMBER_IN_NAME = re.compile(r"\d{1,4}(?:\.\d+)*(?:[A-Za-z]?|(?:/\d{2,4})+)$")
_NOUNS_AFTER = re.compile(r"[nx]{1,2}(?![nx])")
_DETERMINED = re.compile(r"[tD][j#J]?$")
_FAMILIAR = ("Old", "Young", "Poor", "Dear", "Little", "Good")
_PARTS_OF_NAMES = (
    cues.ORG_ENDINGS | cues.GEO_ENDINGS | cues.GEO_BEGINNINGS | (cues.EVENT_ENDINGS - {"christmas", "easter"})
)
_PLACES = word_list("places")
_STATES = ("is", "was", "are", "were", "has", "had", "be", "been")
_NEVER_ALONE = word_list("cue_words:never alone")


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase [first, last) of words of a sentence that names something, with evidence for its type."""

    title: str
    first: int
    last: int
    type: str
    evidence: int


@dataclass(frozen=True, slots=True)
class Attested:
    """The unit's unambiguous capitals: words of names, in pairs, alone; and its lower-case words."""

    words: frozenset[str]
    single: Counter[str]
    pairs: frozenset[tuple[str, str]]
    common: frozenset[str]


def attest(sentences: Iterable[TaggedSentence], title: str = "") -> Attested:
    """Collect the evidence of a text unit. A document's title counts when all its words are capitalized."""
    words: set[str] = set()
    single: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    common: set[str] = set()
    for sentence in sentences:
        if sentence.heading:
            continue
        kinds = sentence.kinds
        common.update(w for w, k in zip(sentence.words, kinds, strict=True) if k in "nxjJv")
        for match in _RUN.finditer(kinds):
            run = [w.lower() for w in sentence.words[match.start() : match.end()]]
            named = run[kinds[match.start() : match.end()].startswith("W") :]
            words.update(named)
            pairs.update(pairwise(named))
            possessive = kinds[match.end() : match.end() + 2] == "sN" or kinds[: match.start()].endswith("Ns")
            if len(named) == 1 and len(run) == 1 and not possessive and not _OF_A_NAME.match(kinds, match.end()):
                single[named[0]] += 1
    if all(part[0].isupper() for part in title.split()):
        pairs.update(pairwise(title.lower().split()))
    return Attested(frozenset(words), single, frozenset(pairs), frozenset(common))


def decided_kinds(sentence: TaggedSentence, seen: Attested) -> str:
    """Return the sentence's kinds with each undecided capital (W) taken for a name (N) or a common word."""
    kinds = sentence.kinds
    decided = list(kinds)
    for i, kind in enumerate(kinds):
        if kind == "W":
            following = sentence.words[i + 1] if kinds[i + 1 : i + 2] in ("N", "A", "E", "I") else ""
            word = sentence.words[i].lower()
            ends = " ".join(sentence.words[i + 1 : i + 3])  # "Yahoo! bought it" goes on
            exclaimed = ends.startswith("!") and not ends[2:].islower() and word not in seen.words
            numbered = kinds[i + 1 : i + 3] == "#v" and word_tag(word).startswith("NN") and not is_structure_word(word)
            firm = kinds[i + 1 : i + 3] == "&N"
            name = numbered or firm or (not exclaimed and _is_name(word, following.lower(), seen))
            decided[i] = "N" if name else lower_kind(word)
    return "".join(decided)


def _is_name(word: str, following: str, seen: Attested) -> bool:
    """Whether a capitalized word at the start of a sentence is (part of) a name."""
    tag = word_tag(word)
    common = known_word(word)
    is_given_name = word in word_list("given_names")
    if word in word_list("cue_words:times"):
        return False
    if following:
        if (word, following) in seen.pairs or is_given_name:
            return True
        if not common:
            return True
        if word in word_list("generic_words:adjectives"):
            return False
        return following not in seen.single and singular(word) not in word_list("generic_roles")
    if word in seen.words and (word not in seen.common or tag.startswith("NN")):
        return tag not in _FORMS_NO_NAME
    return not common and word not in seen.common and len(word) > 2 and word not in _grammatical_words()


@functools.cache
def _grammatical_words() -> frozenset[str]:
    """Return the stop words of all languages: an English text may hold sentences of others."""
    return frozenset().union(*map(stop_words, NAMES)) - word_list("given_names")


def names_in(sentence: TaggedSentence, kinds: str, seen: Attested, title: str = "") -> list[Mention]:
    """Return the proper names of a sentence. `kinds` are decided; `title` is a name to be mentions in whatever form it
    has.
    """
    spans = _joined([m.span() for m in _NAME.finditer(kinds)], sentence.words, kinds, seen)
    if "#" in kinds:
        spans = _with_numbers(spans, sentence.words, kinds)
    works = _works(sentence.words, kinds) if "q" in kinds else []
    if title and title in sentence.text:
        works += _occurrences(title, sentence, spans)
    if works:
        spans = [(i, j) for i, j in spans if not any(i < last and first < j for first, last in works)]
    mentions = [_named(sentence, kinds, first, last, seen) for first, last in spans]
    names = _alike([_compound(mention, sentence, kinds) for mention in mentions if mention], kinds)
    return names + [
        Mention(sentence.wording(*span), *span, *cues.type_of_title(sentence.words[slice(*span)])) for span in works
    ]


def names_in_heading(sentence: TaggedSentence, kinds: str, seen: Attested) -> list[Mention]:
    """Return the proper names of a heading with evidence of its own, since all words of a heading may have capitals.

    A name is evident by its form, by a word that is no common one, and where other words of the heading have none.
    """
    capitals_tell = any(kind in "nxjJv" for kind in sentence.kinds)

    def is_evident(name: Mention) -> bool:
        unknown = [not (known_word(word.lower()) or word.isupper()) for word in sentence.words[name.first : name.last]]
        is_single = len(unknown) == 1 and kinds.strip(".") == kinds[name.first : name.last]
        return name.evidence >= cues.ENOUGH or (not is_single and (capitals_tell or any(unknown)))

    return [name for name in names_in(sentence, kinds, seen) if is_evident(name)]


def _occurrences(title: str, sentence: TaggedSentence, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the sentence has the title, unless names were places that have all of it."""
    places = []
    for match in re.finditer(re.escape(title), sentence.text):
        first, last = (bisect.bisect_left(sentence.offsets, place) for place in match.span())
        whole = first < last and sentence.wording(first, last) == title
        if whole and not any(i <= first and last <= j for i, j in spans):
            places.append((first, last))
    return places


def _works(words: list[str], kinds: str) -> list[tuple[int, int]]:
    """Quoted titles: capitals, with nothing but function words between them, and no speech (", "Good morning.")."""
    titles = []
    for match in _QUOTED.finditer(kinds):
        first, last = match.span(1)
        last -= kinds[last - 1] == ","
        quoted = range(first, last)
        spoken = kinds[first - 2] in ",." and kinds[last] in ",."
        if last == first or spoken or not (words[first][0].isupper() and words[last - 1][0].isupper()):
            continue
        if all(words[i][0].isupper() or kinds[i] in "optdDafs&#," for i in quoted) and kinds[first:last] != "f":
            titles.append((first, last))
    return titles


def _alike(names: list[Mention], kinds: str) -> list[Mention]:
    """Return what is in_list together is of one type: "Moses Taylor, Marshall Roberts and Chandler White"."""
    for order in (range(1, len(names)), range(len(names) - 2, -1, -1)):
        for i in order:
            near = names[i - 1] if order.step > 0 else names[i + 1]
            one, two = sorted((names[i], near), key=lambda m: m.first)
            between = kinds[one.last : two.first]
            person = near.type == cues.PERSON and not kinds[: names[i].first].endswith("t")
            in_list = (person or near.type == cues.GEO) and between in (",", "a", ",a")
            if names[i].evidence < cues.ENOUGH <= near.evidence and in_list:
                names[i] = replace(names[i], type=near.type, evidence=cues.ENOUGH)
    return names


def _compound(name: Mention, sentence: TaggedSentence, kinds: str) -> Mention:
    """Return "the Atlantic cable" is about a cable: a name between a determiner and a noun is part of a concept."""
    follows = _NOUNS_AFTER.match(kinds, name.last)
    if not follows or name.evidence > 6 or not _DETERMINED.search(kinds, 0, name.first):
        return name
    head = sentence.words[follows.end() - 1]
    title = sentence.wording(name.first, follows.end())
    if head in cues.ORG_ENDINGS and kinds[name.first - 1] == "t" and name.type != cues.PERSON:
        return Mention(title, name.first, follows.end(), cues.ORGANIZATION, 6)
    named = name.type in (cues.PERSON, cues.ORGANIZATION) or name.last - name.first > 2
    if named or kinds[follows.end() - 1] == "x" or singular(head) in word_list("generic_roles"):
        return name
    return Mention(title, name.first, follows.end(), cues.CONCEPT, 5)


def _joined(spans: list[tuple[int, int]], words: list[str], kinds: str, seen: Attested) -> list[tuple[int, int]]:
    """Adjoining runs of capitals made one name where the words between allow it ("Bank of England")."""
    joined = spans[:1]
    for first, last in spans[1:]:
        begin, end = joined[-1]
        between = kinds[end:first]
        if (
            between == "&"
            or (between in ("o", "ot") and _takes_of(words[begin:end], seen))
            or (between == "s" and _keeps_possessive(words[begin:end], kinds[first], seen))
        ):
            joined[-1] = (begin, last)
        elif between == "a" and last - first > 1 and _is_company(words[first:last], words[begin:end]):
            joined[-1] = (begin, last)
            between = "&" if kinds[:begin].endswith("t") else between
        else:
            joined.append((first, last))
        if between in "&a" and "," in kinds[:begin][-1:]:
            _join_list(joined, kinds, between)
    return joined


def _join_list(joined: list[tuple[int, int]], kinds: str, between: str) -> None:
    """Join names before a comma to the firm after it: "Glass, Elliot & Co.", "the A, B and C Company"."""
    begin = len(joined) - 1
    while begin and kinds[joined[begin - 1][1] : joined[begin][0]] == ",":
        begin -= 1
    if begin < len(joined) - 1 and (between == "&" or kinds[: joined[begin][0]].endswith("t")):
        joined[begin:] = [(joined[begin][0], joined[-1][1])]


def _with_numbers(spans: list[tuple[int, int]], words: list[str], kinds: str) -> list[tuple[int, int]]:
    """Return the spans with the numbers that belong to them ("Boeing 737 MAX", "2023 Tax Return")."""
    extended: list[tuple[int, int]] = []
    for first, last in spans:
        if extended and extended[-1][1] == first and kinds[first - 1] == "#":
            extended[-1] = (extended[-1][0], last)
            continue
        first -= _is_led_by_year(words, kinds, first, last)
        extended.append((first, last + _is_numbered(words, kinds, first, last)))
    return extended


def _is_led_by_year(words: list[str], kinds: str, first: int, last: int) -> bool:
    """Whether the year before a name belongs to it: that of a thing, at the start or after a determiner."""
    if not first or not _YEAR.match(words[first - 1]) or kinds[: first - 1][-1:] not in ("", "t", "D", "|", ".", "q"):
        return False
    head = words[last - 1].lower()
    place = head in word_list("places") or head in cues.GEO_ENDINGS
    if place or kinds[last : last + 1] in ("n", "x"):  # "the 2003 Dakota tornado outbreak" is about an outbreak
        return False
    several = last - first > 1 or kinds[: first - 1][-1:] in ("t", "D")  # "the 1911 Census"
    return several and (known_word(head) or head in cues.EVENT_ENDINGS)


def _is_numbered(words: list[str], kinds: str, first: int, last: int) -> bool:
    """Whether the number after a name belongs to it, as in "a Boeing 737" and not in "Arsenal 2, Everton 1"."""
    if kinds[last : last + 1] != "#" or not _NUMBER_IN_NAME.match(words[last]):
        return False
    name, after = words[first:last], kinds[last + 1 : last + 2]
    head = name[-1].lower()
    if after in ("-", "#", "m", "/", ":") or kinds[last - 1] not in "NA" or head in word_list("places"):
        return False
    if last - first == 1 and is_structure_word(head):
        return False
    before, year = kinds[:first][-1:], _YEAR.match(words[last])
    begins = before in ("", ".", "q") and after in ("v", "s")
    counted = first > 0 and words[first - 1].lower() in NUMBERS  # "two Boeing 737", not "Arsenal 2 Everton 1"
    if after in ("n", "x", "J", "j"):
        unit = words[last + 1].lower() in word_list("cue_words:units")
        return (counted or before in ("t", "D")) and not unit and not year
    if year and not (known_word(head) or name[-1].isupper() or head in cues.EVENT_ENDINGS or begins):
        return before in ("t", "D")
    if before == "#":
        return counted
    if name[0].lower() in word_list("given_names"):
        return False
    version = "." in words[last] or "." in name[-1]
    return begins or before in ("t", "D", "p", "o") or (version and before in ("a", "v", ","))


def _takes_of(words: list[str], seen: Attested) -> bool:
    """Whether a name continues after "of", as "Peerage of Scotland" does and "Halpin of Wicklow" does not."""
    head = words[-1].lower()
    common = known_word(head) and head not in seen.single and singular(head) not in word_list("generic_roles")
    return common or head in cues.OF_HEADS or head in cues.ORG_ENDINGS or head in cues.EVENT_ENDINGS


def _keeps_possessive(words: list[str], following: str, seen: Attested) -> bool:
    """ "Heart's Content" and "St. John's Wood" are one name, "Field's Atlantic Telegraph Company" is two."""
    if words[0].rstrip(".") == "St":
        return True
    word = words[-1].lower()
    return len(words) == 1 and following == "N" and known_word(word) and word not in seen.single


def _is_company(words: list[str], left: list[str]) -> bool:
    if words[-1].lower().rstrip(".") not in cues.ORG_ENDINGS or words[0].lower() in word_list("given_names"):
        return False
    return left[0].lower() not in word_list("given_names") and left[-1].lower() not in cues.ORG_ENDINGS


def _trimmed(words: list[str], kinds: str, first: int, last: int, seen: Attested) -> tuple[int, int] | None:
    """Return a run of capitals without what does not belong to the name; None when nothing that names is left."""
    while last - first > 1 and kinds[last - 1] in "Id":
        last -= 1
    if kinds[first] == "E" and last - first > 1 and words[first + 1].lower() in word_list("given_names"):
        first += 1
    if last - first == 1 and kinds[first] in "EIR":
        return None
    stray = words[first] in _FAMILIAR or kinds[first] == "c"
    if last - first == 2 and stray and words[first + 1].lower() in seen.single:
        first += 1  # "Old Marley", "Since Wikidata"
    if len(set(words[first:last])) == 1:
        last = first + 1  # "Scrooge Scrooge"
    if kinds[last : last + 1] == "H" and words[first].lower() not in word_list("places"):
        return None  # "Deputy Prime Minister"
    return first, last


def _named(sentence: TaggedSentence, kinds: str, first: int, last: int, seen: Attested) -> Mention | None:
    words = sentence.words
    span = _trimmed(words, kinds, first, last, seen)
    if span is None:
        return None
    first, last = span
    honorific = words[first - 1].lower().rstrip(".") if first and kinds[first - 1] == "H" else ""
    inner = words[first:last]
    if kinds[last : last + 1] == "#" and is_structure_word(inner[-1]):
        if len(inner) == 1:
            return None
        last -= 1
        inner = words[first:last]
    if last - first == 1 and not honorific and not _stands_alone(inner[0], kinds, first, seen):
        return None
    kind, evidence = cues.type_by_form(inner, "I" in kinds[first : last - 1], kinds[:first].endswith("t"))
    if honorific and evidence < 7:
        kind, evidence = cues.PERSON, 9
    elif kinds[first] == "R" and evidence < 7:
        kind, evidence = cues.PERSON, 7
    elif evidence < 6:
        around = _type_by_context(sentence, kinds, first, last)
        if around[1] > evidence:
            kind, evidence = around
    title = sentence.wording(first, last)
    if title.endswith(".") and not title.endswith(("Co.", "Jr.", "Sr.", "Inc.", "Ltd.", "Corp.", "Bros.")):
        title = title if title[-3:-2] == "." else title.rstrip(".")
    if honorific in FEMALE and len(inner) == 1 and inner[0].lower() not in word_list("given_names"):
        title = f"{words[first - 1].rstrip('.').title()} {title}"
    if words[first].rstrip(".") == "St" and kinds[last : last + 1] == "s":
        title += "'s"
    return Mention(title, first, last, kind, evidence) if len(title) > 1 else None


def _stands_alone(word: str, kinds: str, first: int, seen: Attested) -> bool:
    """Whether a single capitalized word may be a name by itself."""
    lower = word.lower()
    role = singular(lower) in word_list("generic_roles") or lower.rstrip(".") in _NEVER_ALONE
    role |= is_structure_word(lower)
    if role or (len(lower) < 3 and not word.isupper()):
        return False
    if lower in word_list("places"):
        return True
    if lower in _PARTS_OF_NAMES:
        return False
    if not known_word(lower):
        return True
    if lower in seen.common and seen.single[lower] < 2:
        # "the cable … the Cable": a common word that was capitalized once
        return kinds[:first].endswith("t") and word_tag(lower).startswith(("NN", "JJ")) and not is_generic_noun(lower)
    return word_tag(lower) not in _FORMS_NO_NAME or kinds[first] == "N"


def _type_by_context(sentence: TaggedSentence, kinds: str, first: int, last: int) -> tuple[str, int]:
    words = sentence.words
    before = words[first - 1].lower() if first else ""
    after = words[last].lower() if last < len(words) else ""
    second = words[first - 2].lower() if first > 1 else ""
    article = before == "the"
    if before in cues.OCCUPATIONS or (before == "said" and second != "is" and kinds[last : last + 1] != "v"):
        return cues.PERSON, 5
    if after in cues.PERSONAL_VERBS and not article:
        return cues.PERSON, 4
    apposition = words[last + 1 : last + 6] if after == "," else []
    if not article and any(singular(w) in cues.OCCUPATIONS for w in takewhile(lambda w: w != ",", apposition)):
        return cues.PERSON, 4
    is_modifier = kinds[last : last + 1] in ("n", "x") and after not in cues.GEO_ENDINGS
    is_common = is_modifier or known_word(words[last - 1].lower())  # "in Java code", "in Settings"
    is_thing = kinds[first] == "A" or kinds[last : last + 1] == "s" or (is_common and before in cues.WITHIN)
    if before in cues.PLACE_PREPOSITIONS and not is_thing:
        return cues.GEO, 3
    if before in ("from", "to") and second in cues.TRAVEL_VERBS and not is_common:
        return cues.GEO, 3
    if kinds[:first][-1:] in ("p", "o") and after == "," and " ".join(words[last + 1 : last + 2]).lower() in _PLACES:
        return cues.GEO, 4  # "of Akron, Ohio"
    if "who" in (after, *apposition[:1]) or after in ("himself", "herself"):
        return cues.PERSON, 4
    if second in ("brother", "wife", "son", "daughter") and before == ",":
        return cues.PERSON, 4
    strange = not known_word(words[first].lower()) and not known_word(words[last - 1].lower())
    if strange and 1 < last - first < 4 and not article and set(kinds[first:last]) <= set("NdI"):
        return cues.PERSON, cues.HINT  # two adjacent unknown words are mostly a person
    follows = kinds[last : last + 1]
    if last - first == 1 and words[first].lower() in word_list("given_names") and follows in ("v", "s") and not article:
        return cues.PERSON, 3
    acts = last - first == 1 and follows == "v" and word_tag(after) not in ("MD", "VBN") and after not in _STATES
    return cues.NAME, cues.HINT if acts else 0
