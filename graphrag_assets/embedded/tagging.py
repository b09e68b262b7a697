"""Text to tagged sentences: Markdown stripped, words tagged by TextBlob's lexicon, a letter for each kind.

The kinds of a sentence are one string, so that names and phrases are found by regular expressions over it:

    N  capitalized word            W  capitalized where any word would be (sentence start)   A  acronym
    I  initial ("W.")              H  honorific or office   R  title that stays in a name
    c  capital where no name would have it, as in "Carry On Cruising", "Elizabeth II" and "ARIA Charts"
    E  adjective of origin         m  month, weekday        #  number                        o  "of"
    t  "the"     D  other determiner     a  "and"     &  itself     d  "de", "von", …     s  possessive 's
    n  noun      x  noun too general to name anything     J  relational adjective     j  other adjective
    v  verb      p  preposition      f  other function word         q  opening quotation mark
    .  end of a clause               |  table cell     z  anything else; other punctuation is itself
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise, zip_longest
from typing import NamedTuple

from graphrag_assets.runtime.processes import once_per_process
from graphrag_assets.text.words import INVISIBLE, sentences

_ABBREVIATIONS = (
    r"Mr|Mrs|Ms|Dr|St|Messrs|Capt|Lieut|Lt|Prof|Rev|Hon|Col|Gen|Sgt|Adm|Maj|Co|Ltd|Inc|Corp|Bros|Jr|Sr|Mme|No"
)
NAME_WITH_SIGNS = (
    r"(?<!\w)\.[A-Z]{2,}\b"  # .NET
    r"|\b[A-Z]\w?(?:\+\+|[#*])(?!\w)|\b[A-Z]\w+\+{1,2}(?!\w)"  # C++, C#, A*, Disney+
    r"|\b[A-Z]{1,3}&[A-Z]{1,3}\b"  # AT&T
    r"|\b(?:[A-Z]\w+\.[A-Z]{2,}|[^\W\d_]\w*\.(?!(?:he|she|it|they|we|and|but|the|in|on|at|to|of|is|was|then|so|as|if|or"
    r"|for|by|an|no)\b)[a-z][a-z\d]{1,4})\b(?!\.\w)"  # ASP.NET, Socket.IO, Node.js
)
"""Names with signs that otherwise end a word or a sentence."""
_SIGNED = re.compile(NAME_WITH_SIGNS)
_WORDS = (
    r"(?:[A-Z]\.){2,}"
    rf"|\b(?:{_ABBREVIATIONS})\."
    r"|\b[A-Z]\.(?=\s?(?:[A-Z]|de |van |von ))"
    r"|[£$€¥]?\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s)?\b%?|[£$€¥]?\d+%?"
    r"|'s\b"
    r"|[^\W\d_]\w*(?:-\w+|'(?!s\b)[^\W\d_]+)*"
    r"|--+|\.\.\.|\S"
)
_TOKEN = re.compile(_WORDS)
_TOKEN_WITH_SIGNS = re.compile(rf"(?:[A-Z]\.){{2,}}|{NAME_WITH_SIGNS}|{_WORDS}")
_NORMALIZED = str.maketrans("’‘‛`´“”„‟«»‹›‐‑\u00a0\u2002", '\'"\'\'\'""""""""--  ')
_LINK = re.compile(r"!?\[([^\]\n]*)\](?:\([^)\s]*(?: \"[^\"]*\")?\)|\[[^\]]*\])")
_EMPHASIS = re.compile(
    r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]+?)(?<=\S)\1(?!\*)|(?<![\w_])(_{1,3})(?=[^\s_])([^_]+?)(?<=\S)\3(?!\w)"
)
_CELL = re.compile(r"(?<=\S)\t+(?=\S)")
_TAG = re.compile(r"<[^<>\n]{1,60}>")
_LINE_BREAK_TAG = re.compile(r"\s*<br\s*/?>\s*", re.IGNORECASE)
_MARKUP_STAR = re.compile(r"(?<!\b[A-Z])\*|(?<=[A-Z])\*(?=\w)")  # not that of "A*"
_UNDERLINE = re.compile(r"(?:={3,}|-{3,})$")
_NUMBERED = re.compile(r"§{1,2} ?\d|(\w+) (?:\d+(?:[.-]\d+)*[a-z]?|[IVXLC]+)(?!\w)")
_LONGEST_NUMBERED_HEADING = 80  # characters
_LINE_START = re.compile(r"^\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])\s+)?", re.MULTILINE)
FILE_NAME = re.compile(r"[/\\_]|\.\w{1,5}(?: \(\d+\))?$|^\W*$")
"""A title that is the name of a file."""
_DRAWN_OUT = re.compile(r"(?:([^\Waeiou])\1+|(\w)\2{2,})$")
_HUM = re.compile("(?=.{3})[bgp]?[fhmrs]{2,}t?$|m+$")
_ROMAN = re.compile(r"^[IVX]{1,5}$")
_BEFORE_QUOTE = " (-\"'"
_CONTRACTED = re.compile(r"^[A-Za-z]+'(?:ll|ve|d|re|m|t|em)$")
_TAG_KINDS = {
    "DT": "D", "IN": "p", "TO": "p", "CC": "f", "PRP": "f", "PRP$": "D", "WDT": "f", "WP": "f", "WP$": "f",
    "WRB": "f", "EX": "f", "PDT": "D", "RB": "f", "RBR": "f", "RBS": "f", "RP": "f", "UH": "z", "MD": "v",
    "CD": "#", "POS": "s",
    "VB": "v", "VBD": "v", "VBZ": "v", "VBP": "v", "VBN": "v", "VBG": "v", "JJ": "j", "JJR": "j", "JJS": "j",
    "NN": "n", "NNS": "n", "NNP": "n", "NNPS": "n", "FW": "n",
}  # fmt: skip
_RELATIONAL = re.compile(r"(?:[aei]al|[rntcdslm]al|ic|ical|ine|ary|lar|oid|ean|ian)$")
_FUNCTION_WORDS = {
    "a": "D", "of": "o", "the": "t", "and": "a", "to": "p", "that": "f", "this": "D", "no": "D", "not": "f",
    "thy": "D", "thine": "D", "mine": "f",
}  # fmt: skip
_HARD_BREAK = "\x1e"
_MAIL_HEADER = re.compile(
    r"[ \t>]*(?:from|to|cc|bcc|subject|date|sent|reply-to|sender|message-id|attachments?|von|an|betreff|datum|gesendet"
    r"|de|à|objet|envoyé|para|asunto|fecha|от|кому|тема|дата)[ \t]*:",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"^[ \t]*+\S[^\n]*+(?:\n[ \t]*+\S[^\n]*+)+", re.MULTILINE)
_NARROWEST_WRAP = 45  # characters: prose is not wrapped to less
_FILLED = 0.75  # of the width: not all wrap exactly
_ENDS_PROSE = tuple(".!?:;,\"')*_")
_NOT_OF_NAMES = frozenset("Dfptaoz#nxjJvm")
# Where any word has a capital letter, a capital is no evidence of a name.
_UNDECIDED = re.compile(r"(^[^\w#]*|[.q|]['q(]?)N")


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence with its span in the text unit, cleaned text, words with their offsets in it, and kinds.

    `paragraph` numbers the paragraphs; a line that was not wrapped is one of its own.
    """

    start: int
    end: int
    text: str
    words: list[str]
    offsets: list[int]
    kinds: str
    heading: bool = False
    paragraph: int = 0

    def end_of(self, last: int) -> int:
        """Return the offset after the words before `last`."""
        return self.offsets[last - 1] + len(self.words[last - 1])

    def wording(self, first: int, last: int) -> str:
        """Return the text of the words [first, last)."""
        return self.text[self.offsets[first] : self.end_of(last)]


@functools.cache
def word_list(name: str) -> frozenset[str]:
    """Return the words of a data file `NAME.txt`, or of one section of it as `NAME:section`."""
    file, _, section = name.partition(":")
    text = resources.files(__package__).joinpath(f"{file}.txt").read_text("utf-8")
    if section:
        text = text.split(f"[{section}]\n")[1].split("\n[")[0]
    lines = [line for line in text.splitlines() if not line.startswith(("#", "["))]
    if any(";" in line for line in lines):
        return frozenset(name.strip() for line in lines for name in line.split(";"))
    return frozenset(word for line in lines for word in line.split())


def alternatives(*sections: str) -> str:
    """Return a regular expression for the words of these sections of `cue_words.txt`, longer ones first."""
    words = frozenset[str]().union(*(word_list(f"cue_words:{section}") for section in sections))
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"


HONORIFICS = word_list("cue_words:honorifics")
FEMALE = word_list("cue_words:female")
CALENDAR = word_list("cue_words:calendar")
NUMBERS = word_list("cue_words:numbers")
_KEPT_TITLES = word_list("cue_words:titles kept")
_PARTICLES = word_list("cue_words:particles")
_EXCLAIMED = word_list("cue_words:exclaimed")
_MADE_ADJECTIVE = word_list("cue_words:adjective endings")
_STRUCTURE = word_list("cue_words:structure")


def is_structure_word(word: str) -> bool:
    """Whether a word with a number is a part of a document, as "Article" in "Article 5", and not a name."""
    return word.lower().rstrip(".") in _STRUCTURE


def is_numbered_part(line: str) -> bool:
    """Whether a line begins with a numbered part of a document, such as "Article 5" or "§ 12"."""
    numbered = _NUMBERED.match(line)
    return numbered is not None and (numbered[1] is None or is_structure_word(numbered[1]))


@once_per_process()
def _tagger() -> tuple[object, dict[str, str]]:
    from textblob.en import lexicon, parser  # imports nltk

    "word" in lexicon  # noqa: B015 - the lexicon loads itself on the first look-up, and is not whole until then
    return parser, lexicon


@functools.lru_cache(maxsize=1 << 17)
def word_tag(word: str) -> str:
    """Penn Treebank tag by TextBlob's lexicon tagger, which looks at each word alone.

    An inflected or hyphenated word is tagged by its form and last part where the lexicon lacks it.
    """
    parser, lexicon = _tagger()
    if word in lexicon:
        return lexicon[word]
    if len(word) > 60:
        return "FW"
    if "-" in word:
        last = word.rsplit("-", 1)[1]
        tag = word_tag(last) if last else "NN"
        return "JJ" if tag.startswith(("VB", "JJ", "RB", "IN")) else tag
    return str(parser.find_tags([word])[0][1])  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=1 << 17)
def known_word(word: str) -> bool:
    """Whether the lower-case `word`, or what it is inflected from, is a common word of the lexicon."""
    _, lexicon = _tagger()
    stems = [word]
    for suffix in ("s", "es", "ed", "d", "ing", "ly", "er", "est", "'ll", "'ve", "n't", "'d", "'re", "'m"):
        if word.endswith(suffix) and len(word) - len(suffix) > 2:
            stems += [word[: -len(suffix)], word[: -len(suffix)] + "e"]
    stems += [word[: -len(end)] + "y" for end in ("ies", "ied", "ier", "iest", "ily") if word.endswith(end)]
    if "-" in word:
        return all(known_word(part) for part in word.split("-") if part)
    return any(not lexicon.get(stem, "NNP").startswith("NNP") for stem in stems)


@functools.lru_cache(maxsize=1 << 17)
def singular(word: str) -> str:
    """Return the lower-case noun without its regular plural ending ("companies": "company")."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes", "zes")) else word[:-1]


def _is_exclaimed(word: str) -> bool:
    """Whether a word is an interjection, drawn out or repeated too, such as "Mm-hmm", "Ahh" and "Uh-huh"."""
    parts = [(part, _DRAWN_OUT.sub(r"\1\2", part)) for part in word.split("-")]
    return all(plain in _EXCLAIMED or word_tag(plain) == "UH" or _HUM.match(part) for part, plain in parts)


@functools.lru_cache(maxsize=1 << 17)
def lower_kind(word: str) -> str:
    """Return the kind of a lower-case word."""
    if word in _FUNCTION_WORDS:
        return _FUNCTION_WORDS[word]
    if word in _PARTICLES:
        return "d"
    if word in NUMBERS or word.split("-", 1)[0] in NUMBERS:
        return "#"
    if word in _EXCLAIMED or len(word) == 1:
        return "z"
    if _CONTRACTED.match(word):
        return "f"
    kind = _TAG_KINDS.get(word_tag(word), "z")
    if kind in "nj" and word in word_list("generic_words:adjectives"):
        return "j"
    if kind == "n":
        return "x" if is_generic_noun(word) else "n"
    return "J" if kind == "j" and _RELATIONAL.search(word) else kind


@functools.lru_cache(maxsize=1 << 16)
def is_generic_noun(word: str) -> bool:
    """Whether a lower-case noun names nothing in particular."""
    general = word_list("generic_words:nouns") | NUMBERS
    return word in general or singular(word) in general or word in CALENDAR


@functools.lru_cache(maxsize=1 << 17)
def _kind(word: str) -> str:
    """Return the kind of a word by its form alone; capitalized words are taken for names."""
    first = word[0]
    if first.isdigit() or first in "£$€¥":
        return "#"
    if first == "." and word[-1].isalpha():
        return "A"  # .NET
    if not first.isalpha():
        if word in ("'s", "–"):
            return "s" if word == "'s" else "-"
        return word if len(word) == 1 and word not in "—!?:…" else "."
    if not first.isupper():
        return lower_kind(word)
    lower = word.lower().rstrip(".")
    if _CONTRACTED.match(word):
        return "z"
    if len(word) == 2 and word[1] == ".":
        return "I"
    if lower in HONORIFICS or (lower.endswith("s") and lower[:-1] in HONORIFICS):
        return "H"
    if lower in _KEPT_TITLES:
        return "R"
    if lower in CALENDAR:
        return "m"
    if lower in word_list("demonyms") or ("-" in lower and lower.rsplit("-", 1)[-1] in _MADE_ADJECTIVE):
        return "E"
    if lower in _EXCLAIMED or lower in NUMBERS or len(word) == 1 or (not word.isupper() and _is_exclaimed(lower)):
        return "D" if word == "A" else "z"
    if word.isupper() and len(word) > 1:
        if _ROMAN.match(word):
            return "z"
        return lower_kind(lower) if known_word(lower) and len(word) > 3 else "A"
    if lower in ("north", "south", "east", "west"):
        return "N"
    kind = lower_kind(lower)
    return kind if kind in "Dfptao" or (kind == "z" and word_tag(lower) == "UH") else "N"


class RawSentence(NamedTuple):
    """A sentence, or a line that was not wrapped, with its span in the text and the number of its paragraph.

    `heading`: it is one by its marks, its underline or its number ("Article 5").
    """

    start: int
    end: int
    text: str
    paragraph: int
    heading: bool = False


def raw_sentences(text: str) -> Iterator[RawSentence]:
    """Yield the sentences of a text unit that are not blank, with typographic quotes and dashes made plain."""
    plain = _with_hard_breaks(text.translate(_NORMALIZED))
    paragraph = 0
    for span in sentences(text):
        begin = span.start
        lines = plain[span.start : span.end].split(_HARD_BREAK)
        for line, following in zip_longest(lines, lines[1:], fillvalue=""):
            label = _MAIL_HEADER.match(line)
            stripped = line[label.end() if label else 0 :].strip()
            if stripped:
                start = begin + line.index(stripped, label.end() if label else 0)
                heading = _is_heading(stripped, following.strip())
                yield RawSentence(start, start + len(stripped), stripped, paragraph, heading)
            begin += len(line) + 1
            paragraph += begin <= span.end
        paragraph += span.ends_paragraph


def _is_heading(line: str, following: str) -> bool:
    """Whether a line is a heading without regard to its capitals; `following`: the next line of its paragraph."""
    if line[0] == "#" or _UNDERLINE.match(following):
        return True
    return len(line) <= _LONGEST_NUMBERED_HEADING and line[-1] not in ".!?;," and is_numbered_part(line)


def _with_hard_breaks(text: str) -> str:
    """`text`, of the same length, with `_HARD_BREAK` for line breaks that end a line of an address, a list or a header.

    Prose is wrapped where the next word barely fits into the line; such breaks are unchanged.
    """
    return _BLOCK.sub(_break_block, text.replace(_HARD_BREAK, " "))


def _break_block(block: re.Match[str]) -> str:
    lines = block.group().split("\n")
    width = max(map(len, lines))
    prose = width >= _NARROWEST_WRAP and lines[-1].rstrip().endswith(_ENDS_PROSE)
    parts = [lines[0]]
    for line, following in pairwise(lines):
        soft = (
            prose
            and len(line.rstrip()) + 1 + len(following.split(maxsplit=1)[0]) > _FILLED * width
            and not _MAIL_HEADER.match(line)
            and not _MAIL_HEADER.match(following)
        )
        parts += ("\n" if soft else _HARD_BREAK, following)
    return "".join(parts)


def has_signs(text: str) -> bool:
    """Whether a sentence may have names with signs in it, such as Node.js and C++."""
    signs = text.find(".", 0, -1) >= 0 or any(sign in text for sign in "+#*&")
    return signs and _SIGNED.search(text) is not None


def tagged(raw: RawSentence) -> TaggedSentence:
    """Return an English sentence, cleaned and split into words with their kinds."""
    text = clean(raw.text)
    words: list[str] = []
    offsets: list[int] = []
    kinds: list[str] = []
    capitals: list[int] = []  # within the sentence, of words that names have none of
    tokens = _TOKEN_WITH_SIGNS if has_signs(text) else _TOKEN
    for match in tokens.finditer(text):
        word = match.group()
        kind = _kind(word)
        if (
            word in "\"'"
            and (match.start() == 0 or text[match.start() - 1] in _BEFORE_QUOTE)
            and match.end() < len(text)
            and not text[match.end()].isspace()
        ):
            kind = "q"
        elif (
            word[0].isupper()
            and kind in _NOT_OF_NAMES
            and words
            and _means(kind, kinds[-1])
            and (word != "A" or kinds[-1] == "N")
        ):
            capitals.append(len(words))
        words.append(word)
        offsets.append(match.start())
        kinds.append(kind)
    joined = "".join(kinds)
    heading = raw.heading or _is_title_case(words, joined)
    joined = _UNDECIDED.sub(lambda m: m.group(1) + "W", joined)
    if capitals and not heading:
        joined = _with_capitals(joined, capitals, words)
    return TaggedSentence(raw.start, raw.end, text, words, offsets, joined, heading, raw.paragraph)


def _with_capitals(kinds: str, capitals: list[int], words: list[str]) -> str:
    """`kinds` with "c" for these capitals, and "N" for a month that is a given name, as in "Mary June Bell"."""
    decided = list(kinds)
    for i in capitals:
        before, after, word = kinds[i - 1], kinds[i + 1 : i + 2], words[i]
        if kinds[i] == "m":
            if before in "NI" and after in ("N", "I") and word.lower() in word_list("given_names"):
                decided[i] = "N"
        elif word == "I":
            if before == "N" and after != "v":
                decided[i] = "c"
        elif not _CONTRACTED.match(word):
            decided[i] = "c"
    return "".join(decided)


def _means(kind: str, before: str) -> bool:
    """Whether the capital of a word that no name has tells something after a word or sign of the kind `before`."""
    return before not in ".q|])" and (before not in "([" or kind in "tD")


def _is_title_case(words: list[str], kinds: str) -> bool:
    """Capitalized or upper-case words without a full stop are a heading, whose capitals tell nothing."""
    letters = [word for word in words if word[0].isalpha()]
    if len(letters) < 2 or "|" in words:
        return False
    if is_upper_case(letters):
        return True
    if words[-1] in ".!?\"'…:;," or "v" in kinds or words[0].lower() in word_list("given_names"):
        return False
    content = [word for word in letters if len(word) > 3]
    return len(content) > 2 and len(words) < 16 and all(word[0].isupper() for word in content)


def is_upper_case(words: list[str]) -> bool:
    """Whether most of the words, and at least two, are in capitals."""
    upper = sum(word.isupper() and len(word) > 1 for word in words)
    return upper > 1 and upper > len(words) * 0.6


def clean(raw: str) -> str:
    """Return the text without Markdown marks, HTML tags and line breaks."""
    text = raw if raw.isascii() else raw.translate(INVISIBLE)
    if not text:
        return ""
    if text[0] in "#>-*+|0123456789 \t" or "\n" in text:
        text = _LINE_START.sub("", text.lstrip("#"))
    if "\t" in text:
        text = _CELL.sub(" | ", text)
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub(" ", _LINE_BREAK_TAG.sub(" | ", text))
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(lambda mark: mark[2] or mark[4], text.replace("\\*", " ").replace("\\_", "_"))
        text = _MARKUP_STAR.sub(" ", text).replace("__", " ")
    return " ".join(text.strip(" |\n\t").split())
