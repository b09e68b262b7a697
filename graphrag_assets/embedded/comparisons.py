"""Comparisons of two things in English questions: "Who died first, A or B?", "Did A or B lay more miles of cable?"."""

import re
from collections.abc import Sequence

from graphrag_assets.embedded.question_grammar import end_of, joined, noun_phrase, span
from graphrag_assets.embedded.tagging import TaggedSentence, tagged_sentences, word_tag
from graphrag_assets.plans import Order

_EARLIEST = "first earlier earliest sooner before"
_COMPARATIVE = {
    **dict.fromkeys(_EARLIEST.split(), Order.EARLIEST),
    **dict.fromkeys(("last", "later", "latest"), Order.LATEST),
    **dict.fromkeys(("more", "most"), Order.MOST),
    **dict.fromkeys(("less", "least", "fewer", "fewest"), Order.LEAST),
}
_LITTLE = frozenset(["short", "small", "low", "light", "young", "weak", "slow", "narrow", "thin", "cheap", "shallow"])
_WITHOUT_MORE = frozenset(["good", "bad", "fine", "fair"])  # better than what measure?


def comparison(question: str) -> tuple[list[str], list[str], Order] | None:
    """The two things that a question compares, the question for each of their values, and which value it asks for."""
    tagged = next(tagged_sentences(question), None)
    if tagged is None:
        return None
    words, kinds, end = [word.casefold() for word in tagged.words], tagged.kinds, end_of(tagged)
    alternatives = [place for place in range(1, end) if words[place] == "or"]
    if not alternatives:
        return None
    middle = alternatives[-1]
    if words[0] in ("did", "was", "were", "is", "does", "do", "are"):
        return _of_yes_or_no(tagged, middle, end)
    if words[0] not in ("who", "which", "what"):
        return None
    compared = [place for place in range(1, middle) if _order_of(words[place])]
    commas = [place for place in range(middle) if words[place] in (",", ":", ";", "-")]
    if not compared:
        return None
    start = commas[-1] + 1 if commas and commas[-1] > compared[0] else compared[0] + 1
    things = [span(tagged, start, middle), span(tagged, middle + 1, end)]
    if not all(things):
        return None
    head = commas[-1] if commas and commas[-1] > compared[0] else start
    return _of_head(tagged, words, kinds, head, compared[0], things)


def _order_of(word: str) -> Order | None:
    if word in _COMPARATIVE:
        return _COMPARATIVE[word]
    base = _positive(word)
    if base is None:
        return None
    if base in ("old", "young"):
        return Order.EARLIEST if base == "old" else Order.LATEST
    return Order.LEAST if base in _LITTLE else Order.MOST


def _positive(word: str) -> str | None:
    """The adjective that a comparative or superlative is made of: "heavier", "biggest"."""
    stem = re.sub(r"(?:er|est)$", "", word)
    if stem == word or len(stem) < 3 or word_tag(word) not in ("JJR", "JJS", "RBR", "RBS", "RB"):
        return None
    forms = [f"{stem[:-1]}y" if stem.endswith("i") else stem, f"{stem}e", stem[:-1] if stem[-1] == stem[-2] else stem]
    return next((form for form in forms if word_tag(form) in ("JJ", "RB") and form not in _WITHOUT_MORE), None)


def _of_head(
    tagged: TaggedSentence, words: Sequence[str], kinds: str, head: int, compared: int, things: list[str]
) -> tuple[list[str], list[str], Order] | None:
    """See `comparison`: of "Who died first, …", "Which cable was heavier, …", "Which had the larger capital, …"."""
    order = _order_of(words[compared])
    assert order is not None
    verb = next((place for place in range(1, head) if kinds[place] == "v"), None)
    if verb is None:
        return None
    noun = span(tagged, 1, verb)
    things = [re.sub(r"^(?:that|the one)\b", f"the {noun}", thing) if noun else thing for thing in things]
    base = _positive(words[compared])
    said = span(tagged, verb, compared)
    if words[compared - 1] == "the" or kinds[verb + 1 : compared + 1].startswith("D"):
        said = span(tagged, verb, compared - 1)
    rest = span(tagged, compared + 1, head)
    if base in ("old", "young"):
        return (things, [f"When was {thing} born?" for thing in things], order) if words[0] == "who" else None
    if order in (Order.EARLIEST, Order.LATEST):
        return things, [joined(thing, said, rest, "when") + "?" for thing in things], order
    if words[verb] in ("was", "is", "were", "are") and base and not rest:
        return things, [f"How {base} {words[verb]} {thing}?" for thing in things], order
    if rest and words[verb] in ("had", "has", "have"):
        did = {"had": "did", "has": "does", "have": "do"}[words[verb]]
        wanted = "How many" if base is None else "How much"
        return things, [f"{wanted} {rest} {did} {thing} have?" for thing in things], order
    asked = "how many" if base is None else "what"
    return (things, [joined(thing, said, asked, rest) + "?" for thing in things], order) if rest else None


def _of_yes_or_no(tagged: TaggedSentence, middle: int, end: int) -> tuple[list[str], list[str], Order] | None:
    """See `comparison`: of "Did the Niagara or the Agamemnon lay more miles of cable?"."""
    words, kinds = [word.casefold() for word in tagged.words], tagged.kinds
    last = noun_phrase(words, kinds, middle + 1, end)
    compared = next((place for place in range(last, end) if _order_of(words[place])), None)
    if compared is None or last == middle + 1:
        return None
    order = _order_of(words[compared])
    assert order is not None
    things = [span(tagged, 1, middle), span(tagged, middle + 1, last)]
    verb, rest = span(tagged, last, compared), span(tagged, compared + 1, end)
    if order in (Order.EARLIEST, Order.LATEST):
        return things, [joined("When", words[0], thing, verb, rest) + "?" for thing in things], order
    if words[compared] not in _COMPARATIVE or not rest:
        return None
    counted = re.match(r"(\S+(?: of \S+)?)(.*)", rest)
    assert counted is not None
    questions = [joined("How many", counted[1], words[0], thing, verb, counted[2].strip()) + "?" for thing in things]
    return things, questions, order
