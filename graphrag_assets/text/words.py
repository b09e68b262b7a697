"""Text rules that indexing and querying must share: keys of titles, sentences, search terms, tokens."""

import bisect
import functools
import importlib.util
import itertools
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import sentencex

if TYPE_CHECKING:
    import tiktoken

QUOTES = "\"'`´‘’‚‛“”„‟«»‹›_"
INVISIBLE: dict[int, None] = dict.fromkeys(
    (
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
        *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
        *(*range(0xFFF0, 0xFFF9), *range(0xE0001, 0xE0080), *range(0xE0100, 0xE01F0)),
    )
)
"""What Unicode calls default ignorable, for `str.translate`: a text looks the same without these characters."""
# The macro title_key has these rules, too: RE2 has no assertions.
_SUPERSCRIPT = re.compile(r"(\w)([⁰¹²³⁴-⁹]+)")
_EMPHASIS = re.compile(r"(^|[^\w*])\*{1,3}([^ *](?:[^*]*[^ *])?)\*{1,3}")
_STARS = re.compile(r"(^|[^\w*])\*+")  # not that of "A*"
_POSSESSIVE = re.compile(r"([\"”“»«*])['’]s$")
_CODE_NAME = re.compile(r"__[A-Za-z0-9]\w*__$", re.ASCII)
_QUALIFIER = re.compile(r"\s*\([^()]*\)$")
_DOT_IN_NAME = re.compile(r"[\w\s]\.[A-Z]{2}")  # Socket.IO, .NET
_NOT_SPACE = re.compile(r"\S")
_BLANK_LINE = re.compile(r"\n[ \t\r\f\v]*\n")
_ITEM_MARK = re.compile(r"^[ \t]*+(?:[-*+•]|\d{1,3}[.)])(?=[ \t])", re.MULTILINE)
# A numbered item has at most three digits: a wrapped line of prose may well begin with "1866. ".
TABLE_ROW = r"\||(?=[^|\n]+ \| [^|\n]+ \| )"
"""How a row of a table begins; without a bar at its beginning, it has two within."""
_STRUCTURE = re.compile(
    rf"^[ \t]*+(?:(?P<heading>#{{1,6}}[ \t])|(?P<row>{TABLE_ROW})|(?P<item>(?:[-*+•]|\d{{1,3}}[.)])[ \t]))",
    re.MULTILINE,
)
# Full stops that end no sentence in any language of an index; of itself the splitter is asked for English alone.
_ABBREVIATED = re.compile(
    r"(?<!\w)(?:(?:[vV]gl|[bB]zw|[iI]nkl|[sS]og|Hrsg|geb|gest|Mme|Mlle|MM|Sra|Srta|Uds?|EE|av|[pP]\.\s?ej"
    r"|[сС]м|[сС]р|[нН]апр|[иИ]м|[тТ]|(?<=т\.\s)е|[гГ]|гг|вв?|тыс|млн|млрд|ул|[А-ЯЁ]"
    r"|(?:[aA]m|[iI]m|[vV]om|[zZ]um|[bB]is|[dD]e[rnms]|[dD]ie|[dD]as)\s\d{1,2})\.\s*"
    r"|(?:[aA]bs|[zZ]iff|[kK]ap|[bB]d|[vV]ols?|[cC]hap|[eE]nv|[pP]ágs?|[nN]úm|[сС]тр|[рР]ис|[гГ]л|[aA]pprox)\.\s*(?=\d)"
    r"|\d{1,2}\.\s(?=Jan|Feb|März|April|Mai|Juni|Juli|Aug|Sept|Okt|Nov|Dez|Jahrh))"
)
_AROUND_CUT = 12  # the characters of an abbreviation, and of what follows it
_SLICE = 20_000
_LAST_PARAGRAPH = re.compile(r".*\n[ \t\r]*\n", re.DOTALL)
_LAST_SENTENCE = re.compile(r".*(?:[.!?][\"'”’)\]]*\s|[。！？][\"'”’)\]」』）]*)", re.DOTALL)
_WORD = r"[\p{L}\p{M}\p{N}]+"
# Regular expressions of polars, which has no assertions.
POSSESSIVE = r"['’ʼ]s([^\p{L}\p{M}\p{N}]|$)"
HYPHEN = "[-‐]"
COMPOUND = rf"{_WORD}(?:{HYPHEN}{_WORD})+"
_LATIN_AND_GREEK = ((0xC0, 0x250), (0x370, 0x400), (0x1E00, 0x2000))
_COMBINING = (0x300, 0x370)
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ς": "σ", "ё": "е"}
    | {"æ": "ae", "œ": "oe", "þ": "th"}
)
FOLDED: dict[int, str] = {
    **dict.fromkeys(range(*_COMBINING), ""),
    **{
        code: plain
        for code in itertools.chain.from_iterable(range(*ends) for ends in _LATIN_AND_GREEK)
        if (plain := "".join(c for c in unicodedata.normalize("NFD", chr(code)) if not unicodedata.combining(c)))
        != chr(code)
    },
    **_PLAIN,
}
SPELLED_OUT: dict[int, str] = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "æ": "ae", "ø": "oe"})
# Inside brackets of a regular expression, of DuckDB's too.
UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
OPTIONAL_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0640"
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_UNSPACED_PAIR = re.compile(f"[{UNSPACED}]{{1,2}}")
_SPACE_RUN = re.compile(r"\s{100000}")
_MAX_CHARACTERS_PER_TOKEN = 12
_MIN_CUT_TOKENS = 20  # of a text that is cut inside a sentence; a shorter piece says nothing


def title_key(title: str) -> str:
    """Return the key under which titles are compared: NFKC, case-folded, spaces and quotes trimmed.

    Invisible characters make no difference. Signs that belong to a name do, and so do superscripts.

    >>> title_key("  The “Great  Eastern”'s "), title_key("the *Great Eastern*"), title_key("Great\u00ad Eastern")
    ('the great eastern', 'the great eastern', 'great eastern')
    >>> title_key("A*"), title_key(".NET"), title_key("10⁶"), title_key("McDonald’s"), title_key("__init__")
    ('a*', '.net', '10^6', "mcdonald's", '__init__')
    >>> title_key("İzmir")
    'izmir'
    """
    if _CODE_NAME.match(title):
        return title.casefold()
    text = title if title.isascii() else _SUPERSCRIPT.sub(r"\1^\2", title.translate(INVISIBLE))
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().replace("i̇", "i").split())
    if "*" in text:
        text = _STARS.sub(r"\1", _EMPHASIS.sub(r"\1\2", text))
    text = _POSSESSIVE.sub(r"\1", text.strip(QUOTES + " "))
    text = f"{text[:-2]}'s" if text.endswith("’s") else text
    return "".join(c for c in text if c not in '"“”„«»').strip(QUOTES + " ")


def without_qualifier(title: str) -> str:
    """Return a title or its key without a qualifier in parentheses at its end; empty if the title is nothing else.

    >>> without_qualifier("Mercury (planet)")
    'Mercury'
    """
    return _QUALIFIER.sub("", title)


class Sentence(NamedTuple):
    """A sentence with its character span in the text it comes from; trailing white space belongs to it."""

    start: int
    end: int
    ends_paragraph: bool


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of `text`, in any language, as adjoining spans that cover it completely.

    A blank line, a Markdown heading, a list item and a table row end a sentence too; a heading or a table row
    is one sentence whatever punctuation it has. `ends_paragraph`: a blank line or a heading follows, or the
    sentence is a heading.
    """
    if not text:
        return []
    headings, unbroken, cuts = _structure(text)
    starts_unbroken = [start for start, _ in unbroken]
    # The splitter takes a whole list item for a sentence: it is shown spaces in place of the marker.
    plain = _ITEM_MARK.sub(lambda mark: " " * len(mark.group()), text)
    for cut in _punctuation_cuts(plain):
        if _DOT_IN_NAME.match(text, max(cut - 2, 0)) or _is_abbreviated(text, cut):
            continue
        before = bisect.bisect_left(starts_unbroken, cut) - 1
        if before < 0 or cut > unbroken[before][1]:
            cuts.add(cut)

    first = _NOT_SPACE.search(text)
    starts = [first.start() if first else 0]
    for cut in sorted(cuts):
        if cut <= starts[-1]:  # in the white space that the cut before has passed over
            continue
        following = _NOT_SPACE.search(text, cut)
        if following is None:
            break
        starts.append(following.start())

    spans: list[Sentence] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        content_end = start + len(text[start:end].rstrip())
        paragraph = start in headings or end in headings or _BLANK_LINE.search(text, content_end, end)
        spans.append(Sentence(start if spans else 0, end, bool(paragraph)))
    return spans


def sentence_lines(text: str) -> list[str]:
    """Return the sentences of `text`, each on one line.

    >>> sentence_lines("One ship sailed.  Another\\nship sank.")
    ['One ship sailed.', 'Another ship sank.']
    """
    return [" ".join(text[sentence.start : sentence.end].split()) for sentence in sentences(text)]


def _is_abbreviated(text: str, cut: int) -> bool:
    around = _ABBREVIATED.finditer(text, max(cut - _AROUND_CUT, 0), cut + _AROUND_CUT)
    return any(match.end() == cut for match in around)


def _structure(text: str) -> tuple[set[int], list[tuple[int, int]], set[int]]:
    """Where headings start, spans in which no punctuation ends a sentence, and the cuts that lines make."""
    headings: set[int] = set()
    unbroken: list[tuple[int, int]] = []
    cuts = {blank.end() for blank in _BLANK_LINE.finditer(text)}
    for mark in _STRUCTURE.finditer(text):
        kind = str(mark.lastgroup)
        start = mark.start(kind)
        end = mark.end()  # an item's marker; its text is prose
        if kind != "item":
            end = text.find("\n", mark.end()) + 1 or len(text)
            cuts.add(end)
        if kind == "heading":
            headings.add(start)
        unbroken.append((start, end))
        cuts.add(start)
    return headings, unbroken, cuts


def _punctuation_cuts(text: str) -> Iterator[int]:
    """Sentence ends by punctuation, found in slices: on one long paragraph the splitter's time is quadratic.

    The splitter never looks beyond a blank line, so a slice that ends there changes nothing. Within a
    paragraph longer than a slice, the slice ends where a sentence seems to.
    """
    start = 0
    while start < len(text):
        end = start + _SLICE
        safe = None
        if end < len(text):
            safe = _LAST_PARAGRAPH.match(text, start, end) or _LAST_SENTENCE.match(text, start, end)
        end = safe.end() if safe else min(end, len(text))
        for boundary in sentencex.get_sentence_boundaries("en", text[start:end]):
            if boundary["end_index"] < end - start or safe:
                yield start + boundary["end_index"]
        start = end


def search_words(texts: pl.Series) -> pl.Series:
    """Return the words of each text, for BM25: Unicode words in lower case; scripts without spaces as bigrams.

    What is optional in writing makes no difference: ß is ss, Arabic and Hebrew stand without vowel marks. Possessives
    and soft hyphens are left out, and compounds joined too: of "the customer's e-mail" they are the, customer, e, mail
    and email, so that a hyphenated compound, the number P-317 or the date 2024-03-04 is found by its parts and by any
    spelling of the whole. Returns a Series of lists of strings, compounds last.
    """
    plain = _lowered().str.replace_all("\u00ad", "", literal=True).str.replace_all(POSSESSIVE, "${1}")
    frame = texts.to_frame("text").select(_spaced(texts, plain).alias("text"))
    joined = pl.col("text").str.extract_all(COMPOUND).list.eval(pl.element().str.replace_all(HYPHEN, ""))
    return frame.select(pl.col("text").str.extract_all(_WORD).list.concat(joined).alias("words")).to_series()


def search_words_of(text: str) -> list[str]:
    """Return the distinct words of one text, such as a question."""
    return list(dict.fromkeys(search_words(pl.Series([text], dtype=pl.String)).item(0)))


def has_unspaced_script(text: str) -> bool:
    """Whether `text` has letters of a script without spaces, whose words are bigrams.

    >>> has_unspaced_script("東京"), has_unspaced_script("Tokyo")
    (True, False)
    """
    return not text.isascii() and _UNSPACED_RUN.search(text) is not None


def word_count(text: str) -> int:
    """Return the number of words of `text`; in scripts without spaces two characters count as one.

    >>> word_count("The sky is blue."), word_count("天空是蓝色的")
    (4, 3)
    """
    spaced = text if text.isascii() else _UNSPACED_PAIR.sub(" x ", text)
    return len(spaced.split())


def _lowered() -> pl.Expr:
    words = pl.col("text").str.normalize("NFKC").str.to_lowercase()
    return words.str.replace_all("ß", "ss", literal=True).str.replace_all(f"[{OPTIONAL_MARKS}]", "")


def _spaced(texts: pl.Series, words: pl.Expr) -> pl.Expr:
    """`words` with spaces between overlapping pairs of characters, where a text has a script without spaces."""
    if texts.str.contains(f"[{UNSPACED}]").any():
        return words.map_elements(_space_bigrams, return_dtype=pl.String)
    return words


def fold(word: str) -> str:
    """Return a lower-case word without the diacritics that people leave out where their keyboard lacks them.

    Latin and Greek letters lose all of them, ligatures are written out, and ё is е; й and the signs of other scripts
    stay, because they make other letters.

    >>> fold("malmö"), fold("œuvre"), fold("ёлка"), fold("война")
    ('malmo', 'oeuvre', 'елка', 'война')
    """
    return word if word.isascii() else word.translate(FOLDED)


def spell_out(word: str) -> str:
    """Return a lower-case word with two letters for each umlaut, as German and Scandinavian names are written without
    them.

    >>> spell_out("müller")
    'mueller'
    """
    return word if word.isascii() else word.translate(SPELLED_OUT)


def name_key(key: str) -> str:
    """Return the key of a title as a question may spell it: without diacritics, and with spaces for hyphens.

    >>> name_key(title_key("Saint-Exupéry"))
    'saint exupery'
    """
    return " ".join(fold(re.sub(HYPHEN, " ", key)).split())


def _space_bigrams(text: str) -> str:
    def pairs(match: re.Match[str]) -> str:
        run = match.group()
        return " " + " ".join(run[i : i + 2] for i in range(max(len(run) - 1, 1))) + " "

    return _UNSPACED_RUN.sub(pairs, text)


def lines(columns: Sequence[Sequence[object]]) -> list[str]:
    """Return the rows of these columns as contexts show them: cells with bars between them, and a line break."""
    rows = zip(*columns, strict=True)
    return ["|".join("" if cell is None else str(cell).strip() for cell in row) + "\n" for row in rows]


@functools.cache
def tokenizer(encoding: str = "o200k_base") -> "tiktoken.Encoding":
    """Return a tiktoken encoding that needs no network: litellm ships the two common ones inside its package.

    It takes 80 MB, so what is counted at publication, or fits surely, is not counted again.
    """
    import tiktoken

    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = importlib.util.find_spec("litellm")
        if spec and spec.submodule_search_locations:
            shipped = Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
            os.environ["TIKTOKEN_CACHE_DIR"] = str(shipped)
    return tiktoken.get_encoding(encoding)


def encode(text: str, encoding: str = "o200k_base") -> list[int]:
    """Tokens of `text`, special tokens written in it taken as ordinary text.

    Runs of white space are fed in pieces: tiktoken panics on a run of about a million.
    """
    cuts = [run.end() for run in _SPACE_RUN.finditer(text)]
    encode_piece = tokenizer(encoding).encode_ordinary
    if not cuts:
        return encode_piece(text)
    return [token for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True) for token in encode_piece(text[i:j])]


def count_tokens(texts: Iterable[str], encoding: str = "o200k_base") -> list[int]:
    """Return the number of tokens of each text. Special tokens written in a text count as ordinary text."""
    return [len(encode(text, encoding)) for text in texts]


def cut_text(text: str, max_tokens: int, encoding: str = "o200k_base") -> str:
    """Return the whole sentences at the start of `text` that fit `max_tokens`; a text that fits is returned unchanged.

    A first sentence that does not fit is cut at a word, with an ellipsis; empty if fewer than 20 tokens would be left.

    >>> cut_text("One ship sailed. Another ship sank off the coast.", 6)
    'One ship sailed.'
    """
    start = text[: max(max_tokens, 0) * _MAX_CHARACTERS_PER_TOKEN]
    if start == text and len(encode(text, encoding)) <= max_tokens:
        return text
    ends = [span.end for span in sentences(start)]
    if len(start) < len(text):
        ends = ends[:-1]  # a part of a sentence
    n_sentences = bisect.bisect_right(ends, max_tokens, key=lambda end: len(encode(start[:end].rstrip(), encoding)))
    return start[: ends[n_sentences - 1]].rstrip() if n_sentences else _cut_at_word(start, max_tokens, encoding)


def _cut_at_word(text: str, max_tokens: int, encoding: str) -> str:
    tokens = encode(text, encoding)
    for length in range(min(max_tokens - 1, len(tokens)), _MIN_CUT_TOKENS - 1, -1):
        piece = tokenizer(encoding).decode(tokens[:length]).rstrip("\ufffd")  # a part of a character
        words = piece.rsplit(maxsplit=1)
        first = (words[0] if len(words) > 1 else piece) + "…"
        if len(encode(first, encoding)) <= max_tokens:
            return first
    return ""
