"""The sentences that answers are chosen from, each with its position and its citation."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_assets.answering import Passage
from graphrag_assets.embedded.wording import DANGLING
from graphrag_assets.references import reference, without_references
from graphrag_assets.text import sentences, word_count

_MARKER = re.compile(r"^(?:[-*+] |\d+[.)] |> |\|)")
_ORDER = ("Sources", "Claims", "Relationships", "Entities", "Reports")
_UNDERLINE = re.compile(r"^(?:={3,}|-{3,}|~{3,})\s*$")
_SENTENCE_END = re.compile(r"[.!?:;,…。！？][\"'”’)\]」』）*_]*$")
# Headers of e-mails in the words of common mail programs. A subject is a heading.
_HEADER = re.compile(
    r"^(?:from|to|cc|bcc|date|sent|reply-to|von|an|gesendet|datum|de|à|envoyé|para|fecha|от|кому|дата"
    r"|(?P<subject>subject|betreff|objet|asunto|тема)): ",
    re.IGNORECASE,
)
_REPLY = re.compile(r"^(?:(?:re|fwd?|aw|wg|tr|rv): ?)+", re.IGNORECASE)
_MIN_WORDS, _MAX_WORDS = 4, 120
_MAX_TITLE_WORDS = 12
_NO_EMPHASIS = str.maketrans("", "", "*_")
_MAX_NUMBERS = 3
_CONTINUES = "… "  # before a sentence whose antecedent is not in the evidence
_MAX_BEFORE = 2  # sentences shown before one that refers back


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of the evidence.

    `rank` and `order` are the places of its passage and of itself, from 0; `before` the place of the sentence in
    front of it, in the same passage; `heading` what its passage is about; `cited` the sentence with its reference.
    `rows` are the tables and titles of the rows that hold it. A sentence that `dangles` begins with a pronoun or a
    connective, which mean something in the sentence before it: "It was used again".
    """

    text: str
    rank: int
    order: int
    before: int | None
    heading: str
    cited: str
    rows: tuple[tuple[str, str], ...] = ()
    dangles: bool = False


def dangles(text: str, language: str = "en") -> bool:
    """Whether a sentence begins with a pronoun or a connective.

    >>> dangles("However, it was used again."), dangles("The horse was used again.")
    (True, False)
    """
    return language in DANGLING and bool(DANGLING[language].match(text))


def candidates(passages: Sequence[Passage], language: str = "en") -> list[Candidate]:
    """The sentences of the passages, each once: one that several passages share is cited by all of them.

    Sentences of text units come first: a document is the original source of a statement.
    """
    ordered = sorted(passages, key=lambda p: _ORDER.index(p.table) if p.table in _ORDER else len(_ORDER))
    found: dict[str, tuple[int, str, int, int | None, str]] = {}
    titles: dict[str, dict[tuple[str, int], str]] = defaultdict(dict)  # of the rows that hold a sentence
    for rank, passage in enumerate(ordered):
        before, heading = None, passage.title
        for text, is_heading in _statements(passage.text, language):
            if is_heading:
                heading, before = f"{passage.title} {text}", None
                continue
            key = text.translate(_NO_EMPHASIS)
            titles[key].setdefault((passage.table, passage.number), passage.title)
            before = found.setdefault(key, (len(found), text, rank, before, heading))[0]
    pool = []
    for key, (order, text, rank, before, heading) in found.items():
        cited = f"{text} {reference(titles[key], _MAX_NUMBERS)}"
        rows = tuple((table, title) for (table, _), title in titles[key].items())
        pool.append(Candidate(text, rank, order, before, heading, cited, rows, dangles(text, language)))
    return pool


def lines(passages: Sequence[Passage]) -> list[Candidate]:
    """The lines of the passages, each once: also headers of e-mails, captions and whatever else is no sentence."""
    rank_of: dict[str, int] = {}
    for rank, passage in enumerate(passages):
        for raw in without_references(passage.text).split("\n"):
            words = _MARKER.sub("", raw.strip("# ")).split()
            line = " ".join(words[:_MAX_WORDS]) + (" …" if len(words) > _MAX_WORDS else "")
            if word_count(line):
                rank_of.setdefault(line, rank)
    pool = []
    for order, (line, rank) in enumerate(rank_of.items()):
        cited = f"{line} {reference([(passages[rank].table, passages[rank].number)], 1)}"
        pool.append(Candidate(line, rank, order, None, passages[rank].title, cited))
    return pool


def _statements(text: str, language: str) -> list[tuple[str, bool]]:
    """The sentences of `text` without white space at their ends, references and list marks; and whether a heading."""
    text = without_references(text)
    found = []
    for start, end, ends_paragraph in sentences(text, language):
        titles, raw = _leading_titles(text[start:end].strip())
        found += [(title, True) for title in titles]
        line = " ".join(raw.split())
        more_follows = bool(text[end:].strip())
        if not line:
            continue
        if line.startswith("#") or (ends_paragraph and more_follows and _is_title(line)):
            found.append((line.strip("# "), True))
            continue
        line = _MARKER.sub("", line).strip()
        if _MIN_WORDS <= word_count(line) <= _MAX_WORDS:
            found.append((line, False))
    return found


def _leading_titles(text: str) -> tuple[list[str], str]:
    """The lines in front that are headings, and what follows them.

    Headings are lines in capitals, underlined lines, without the underlining, and subjects of e-mails; other headers
    of e-mails are left out.
    """
    titles = []
    lines = text.split("\n")
    while lines:
        if header := _HEADER.match(lines[0]):
            if header["subject"]:
                titles.append(_REPLY.sub("", lines[0][header.end() :]).strip())
        elif _in_capitals(lines[0]) or (len(lines) > 1 and _UNDERLINE.match(lines[1])):
            titles.append(" ".join(lines[0].split()))
        else:
            break
        lines.pop(0)
        if lines and _UNDERLINE.match(lines[0]):
            lines.pop(0)
    return titles, "\n".join(lines)


def _in_capitals(line: str) -> bool:
    return line.isupper() and len(re.findall(r"[^\W\d_]{2,}", line)) > 1


def _is_title(line: str) -> bool:
    """Whether a paragraph is a title: one short line that no full stop ends."""
    return not _MARKER.match(line) and word_count(line) <= _MAX_TITLE_WORDS and not _SENTENCE_END.search(line)


def in_full(candidate: Candidate, pool: Sequence[Candidate]) -> list[Candidate]:
    """The sentence, after those before it that it refers to; an empty list where these are not in the evidence."""
    found = [candidate]
    while found[0].dangles:
        if found[0].before is None or len(found) > _MAX_BEFORE:
            return []
        found.insert(0, pool[found[0].before])
    return found


def in_words(candidate: Candidate, pool: Sequence[Candidate]) -> str:
    """The sentence as shown: after those that it refers to, each with its citation."""
    return " ".join(each.cited for each in in_full(candidate, pool)) or f"{_CONTINUES}{candidate.cited}"
