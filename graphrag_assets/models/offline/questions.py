"""What a question asks for, read from its words: its terms, the names in it, and the kind of answer it wants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from graphrag_assets.models.offline.stop_words import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?:ingly|edly|ings?|ed|es|(?<!s)s|ly|e)$")
_IES = re.compile(r"(?<=\w{3})i(?:es|ed)$")
_DOUBLED = re.compile(r"([bdgkmnprt])\1(?:ed|ing)$")
# What makes nouns of verbs: commander, failure, agreement, resistance, expedition, arrival. A short rest is a word of
# its own.
_DERIVED = re.compile(r"(?:(?<=\w{3})(?:er|or)|(?<=\w{4})(?:urement|(?<!o)ur|e?ment|anc|enc)|(?<=\w{5})(?:ion|al))$")
# Forms of one word that no ending tells, and nouns that go with it, the word first.
_IRREGULAR = """
begin began begun; break broke broken; bring brought; build built; buy bought; catch caught; choose chose chosen
choice; come came; cost costs; deep depth; die died dies dying dead death deaths; draw drew drawn; drive drove driven;
fail fault faults faulty; fall fell fallen; feel felt; fight fought; fly flew flown flight; give gave; grow grew grown
growth; hear heard; high height; hold held; keep kept; know knew known knowledge; lay laid; lead led; learn learnt
lesson lessons; leave left; lend lent; long length; lose lost loss losses; make made; marry marriage; mean meant; meet
met; pay paid; raise raised; rise rose risen; run ran; see saw seen; seek sought; sell sold sale; send sent; show
shown; sink sank sunk; speak spoke spoken speech; spend spent; stand stood; strike struck; strong strength; take took
taken; teach taught; tell told; think thought; throw threw thrown; true truth; understand understood; wear wore worn;
weigh weight; wide width; win won; write wrote written
"""
_GENERIC = """
main major key chief overall general important central theme topic subject summary summarise summarize describe
description tell explain discuss information data dataset corpus document text story book collection content cover
question answer name list give happen kind sort type way thing fact
"""
_REGARD = " — "

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH}|{_MONTH}(?: \d{{1,2}})?,? \d{{4}}|1[0-9]{{3}}|20[0-9]{{2}}|{_MONTH})\b")
_NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half dozen once twice
"""
_AMOUNT = re.compile(rf"[£$€]?\d[\d,.]*|\b(?:{'|'.join(_NUMBER_WORDS.split())})\b", re.IGNORECASE)
_CAPITALISED = r"[^\W\d_a-zà-öø-ÿ][\w'’&.-]*"
_NAME = re.compile(rf"{_CAPITALISED}(?:(?:,? (?:of|and|de|the|for|&) |,? ){_CAPITALISED})*")
_PLACE = re.compile(rf"\b(?:in|at|from|to|off|near|into|on|of|for|by) (?:the )?{_CAPITALISED}")

_KINDS = (
    (re.compile(r"\bwhen\b|\b(?:what|which|on what) (?:day|date|year|month)\b", re.I), "date"),
    (re.compile(r"\bhow (?:much|many|long|far|deep|heavy|fast|large|big|old|wide)\b", re.I), "number"),
    (re.compile(r"\b(?:cost|price|capital|weight|depth|pressure|speed|length)\b", re.I), "number"),
    (
        re.compile(r"\bwho(?:m|se)?\b|\bwhich (?:\w+ )?(?:men|man|people|person|officer|engineer)\b", re.I),
        "name",
    ),
    (
        re.compile(r"\b(?:which|what) (?:\w+ ){0,2}(?:ship|vessel|company|compan|firm|business|member)", re.I),
        "name",
    ),
    (re.compile(r"\bwhere\b", re.I), "place"),
    (re.compile(r"\bwhy\b|\breasons?\b|\bcauses?\b|\bcaused\b", re.I), "cause"),
    (re.compile(r"\blessons?\b|\blearn(?:s|ed|t)?\b", re.I), "lesson"),
)
_PARTS = re.compile(r"\band\b|[,;]|\bwhy\b|\bhow (?:did|does|do|was|were|is|are|could|can|had|has|have)\b", re.I)
_CAUSE = re.compile(
    r"\b(?:because|since|so that|so \w+ that|therefore|thus|hence|owing to|due to|thanks to|as a result|for this reason"
    r"|(?:caus|result|blam|ruin|damag|destroy|prevent)\w*|reasons?|fail\w*|faults?|faulty|defects?|mistakes?"
    r"|badly|too \w+)\b",
    re.I,
)
_LESSON = re.compile(
    r"\b(?:lessons?|learn(?:ed|t)?|taught|morals?|knowledge|experience|inquiry|conclu\w+|recommend\w*|advised?"
    r"|(?:show|shown|showed|proved?|found|known|discovered) that|understood|must(?: not)?|should(?: not)?)\b|^do not\b",
    re.I,
)

_ABOUT = re.compile(
    r"^(?:who|what)(?: exactly)? (?:is|was|are|were) (?:(?:a|an|the) )?(.+?)\W*$"
    r"|^(?:tell (?:me|us) about|describe|what (?:is|do we) (?:known? )about) (?:(?:a|an|the) )?(.+?)\W*$",
    re.I,
)
_MOST_NAME_WORDS = 6
_WHO_DID = re.compile(r"\bwho (?:had |has |have |was |were |is |are |first |also )*(\w+)", re.I)
_DONE_WEIGHT = 1.2
_TITLES = """
mr mrs ms miss dr sir lord lady dame captain capt professor prof colonel general admiral lieutenant commander president
king queen prince princess saint st doctor judge senator
"""
_HONORIFICS = frozenset(_TITLES.split())
_IS_A = r"(?:was|is|were|are|became|had been|has been|remained)(?: (?:also|then|already|still))? "
_ARTICLE = r"(?:an?|the|one|his|her|its|their)\b"
_COPULA = rf"(?:,? \([^)]*\))?,? (?:{_IS_A}(?:{_ARTICLE}|\w+ of\b|called\b|known as\b)|served as\b)"
_DEFINES = re.compile(rf"{_COPULA}|, (?:{_ARTICLE}|(?:[a-z]+ ){{1,2}}(?:of|at|to|in)\b|who\b|which\b)")
_DEFINES_THING = re.compile(rf"{_COPULA}|, (?:an? |which (?:is|was|are|were) )")  # ", the" is mostly a list's


@cache
def _stem(word: str) -> str:
    """`word` without its ending: laying, lays, laid → lay; commanded, commander → command; failure → fail."""
    word = _BASE_FORMS.get(word, word)
    stem = _DOUBLED.sub(r"\1", word)
    if stem == word:
        stem = _ENDING.sub("", _IES.sub("y", word))
    return _DERIVED.sub("", stem) if len(stem) >= 3 and not word.isdigit() else word


_BASE_FORMS = {form: group.split()[0] for group in _IRREGULAR.split(";") for form in group.split()[1:]}


def stems(text: str) -> set[str]:
    """The content words of `text`, case-folded and without their endings."""
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS}


def names_in(text: str) -> list[str]:
    """Capitalised phrases of `text` of at least two letters, without the words that only begin a sentence."""
    found = []
    for match in _NAME.finditer(re.sub(r"\[Data:[^\]]*\]", "", text)):
        words = match[0].split()
        while words and (words[0].casefold().strip(".,'’") in STOP_WORDS):
            words = words[1:]
        name = " ".join(words).strip(" ,.;:'’")
        name = re.sub(r"['’]s$", "", name)
        if len(name) > 2 and not name.isupper() and not _DATE.fullmatch(name):
            found.append(name)
    return list(dict.fromkeys(found))


def _subject(question: str) -> str | None:
    """X of "Who was X?", "What is the X?", "Tell me about X"; None when more is asked than that."""
    match = _ABOUT.match(" ".join(question.rpartition(_REGARD)[2].split()))
    if not match:
        return None
    words = (match[1] or match[2]).split()
    # A phrase with grammar in it, "the capital of the company", is a question of its own, unless it is a name.
    content = [word for word in words if word.casefold() not in STOP_WORDS]
    is_name = all(word[0].isupper() or word.casefold() in _PARTICLES for word in words)
    simple = is_name or (len(content) == len(words) <= 3)
    return " ".join(words) if simple and content and len(words) <= _MOST_NAME_WORDS else None


_PARTICLES = frozenset(["of", "and", "the", "de", "la", "von", "van", "der", "du", "&", "for"])


def names(subject: str, text: str) -> int | None:
    """Where the first mention of `subject` in `text` ends; a name also by its last word, unless another precedes it.

    Cyrus Field is Cyrus West Field, Mr Field and Field, but not Matthew Field.
    """
    words = subject.split()
    is_name = words[-1][0].isupper()
    for match in re.finditer(rf"\b{re.escape(words[-1])}\b", text, 0 if is_name else re.IGNORECASE):
        before = text[: match.start()].split()
        wanted = [word.casefold() for word in words[:-1]]
        if not wanted or [word.casefold() for word in before[-len(wanted) :]] == wanted:
            return match.end()
        if not is_name:
            continue
        run = []
        while before and before[-1][0].isupper() and before[-1].casefold() not in STOP_WORDS | _PARTICLES:
            run.append(before.pop().casefold())
        others = [word for word in run if word.strip(".,'’") not in _HONORIFICS]
        if not others or others[-1] == wanted[0]:
            return match.end()
    return None


def definition(subject: str, text: str) -> float:
    """How much `text` says who or what the subject is, 0 to 1.

    1 for "X was a …" and "X, the …"; less for other sentences about X, that is with its full name or X in front;
    least for what only mentions X or what belongs to it; 0 without X.
    """
    plain = text.replace("*", "").replace("_", "")
    end = names(subject, plain)
    if end is None:
        return 0.0
    if plain[end : end + 2] in ("'s", "’s"):
        return 0.1
    first = subject.split()[0].casefold()
    defines = (_DEFINES if subject[0].isupper() else _DEFINES_THING).match(plain, end)
    # In "In May, on the motion of X, the society met" the second comma belongs to the first.
    before = plain[:end].casefold().rpartition(first)[0] or plain[:end].rpartition(subject.split()[-1])[0]
    is_aside = "," in before and not before.rstrip().endswith(",")
    if defines and not (is_aside and defines[0].startswith(", ")):
        return 1.0
    in_full = " " in subject and first in plain[max(end - 2 * len(subject), 0) : end].casefold()
    return 0.5 if in_full or end <= len(subject) + 12 else 0.1


@dataclass(frozen=True)
class Asked:
    """A question taken apart.

    `terms` are its content stems in order, `named` those of them that are names or numbers, `kinds` the kinds of
    answer it wants: date, number, name, place, cause, lesson. `subject` is what it asks about when it asks only who
    or what that is.
    """

    text: str
    terms: tuple[str, ...]
    named: frozenset[str]
    kinds: tuple[str, ...]
    subject: str | None = None

    @classmethod
    def of(cls, question: str) -> "Asked":
        """The question as asked; what `with_regard_to` put in front of it counts as part of it."""
        words = [(match[0], match.start()) for match in _WORD.finditer(question)]
        content = [(word, at) for word, at in words if word.casefold() not in STOP_WORDS]
        specific = [(word, at) for word, at in content if _stem(word.casefold()) not in _GENERIC_STEMS]
        terms = tuple(dict.fromkeys(_stem(word.casefold()) for word, _ in specific))
        named = {_stem(w.casefold()) for w, at in specific if w[0].isdigit() or (w[0].isupper() and at > 0)}
        kinds = tuple(dict.fromkeys(kind for pattern, kind in _KINDS if pattern.search(question)))
        return cls(question, terms, frozenset(named), kinds, _subject(question))

    @property
    def about_everything(self) -> bool:
        """Whether it names nothing in particular: "What are the main themes?"."""
        return not self.terms

    @property
    def has_parts(self) -> bool:
        """Whether it asks several things, or why or how something was: what one sentence seldom tells."""
        return bool(_PARTS.search(self.text))

    def with_regard_to(self, name: str) -> str:
        """The same question, asked of something that came up."""
        return f"{name}{_REGARD}{self.text.rpartition(_REGARD)[2]}"

    def weights(self, texts: Sequence[set[str]], by_rarity_alone: bool = False) -> np.ndarray:
        """How much each term counts, 1 in all: rare ones more, names a little more, and numbers half.

        A year is mostly where a text begins, and then for long not repeated.
        """
        counts = np.array([sum(term in words for words in texts) for term in self.terms], float)
        rarity = np.log(1 + (len(texts) + 1) / (counts + 1))
        if by_rarity_alone:
            return np.asarray(rarity / (rarity.sum() or 1))
        weights = rarity * np.array([self._emphasis(term) for term in self.terms])
        return np.asarray(weights / (weights.sum() or 1))

    def _emphasis(self, term: str) -> float:
        if term.isdigit():
            return 0.5
        if term == self._done:
            return _DONE_WEIGHT
        return 1.2 if term in self.named else 1.0

    @cached_property
    def _done(self) -> str | None:
        """The stem of what somebody did in "Who did it?": the answer hardly says it in passing."""
        match = _WHO_DID.search(self.text)
        return _stem(match[1].casefold()) if match else None

    def coverage(self, words: set[str], weights: np.ndarray) -> float:
        """The part of the question that the words cover, 0 to 1."""
        return float(sum(weight for term, weight in zip(self.terms, weights, strict=True) if term in words))

    def holds(self, kind: str, text: str) -> bool:
        """Whether `text` has something of that kind that the question does not have already."""
        found: list[str] = []
        if kind == "date":
            found = _DATE.findall(text)
        elif kind == "number":
            found = _AMOUNT.findall(text)
        elif kind == "place":
            found = [match[0].split(" ", 1)[1] for match in _PLACE.finditer(text)]
        elif kind == "name":
            found = names_in(text)
        elif kind == "cause":
            found = _CAUSE.findall(text)
        elif kind == "lesson":
            found = _LESSON.findall(text)
        known = self.text.casefold()
        return any(item.casefold() not in known for item in found)


_GENERIC_STEMS = frozenset(_stem(word) for word in _GENERIC.split())
