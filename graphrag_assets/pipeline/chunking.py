"""Documents to text units: where to cut, and the character span of every unit in its document.

`anchored` is content-defined chunking over sentences: a cut depends on the text around it only, never on
what was cut before, so that an edit changes the units around it and no others. The cuts are the local maxima
of a priority (N. Bjørner, A. Blass, Y. Gurevich: Content-dependent chunking for differential compression, the
local maximum approach, Journal of Computer and System Sciences 76, 2010).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import polars as pl

from graphrag_assets.ids import stable_id
from graphrag_assets.store import schema
from graphrag_assets.store.schema import polars_schema
from graphrag_assets.text.words import encode, sentences, tokenizer

Method = Literal["anchored", "tokens"]
METHODS: tuple[Method, ...] = get_args(Method)
Span = tuple[int, int]

TEXT_UNITS = polars_schema(schema.TEXT_UNITS, "headings", "context", "page", "sheet", "time", "extractor")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_HEADING = re.compile(r"\s*#{1,6}[ \t]")
_ROLLING = 16
_SAMPLE = 16


@dataclass(frozen=True)
class ChunkOptions:
    """How documents are cut. `size` is a maximum in tokens; `overlap` is of the method `tokens` only.

    `whole`: of the method `anchored`: a document of up to `size` tokens is one text unit.
    """

    method: Method = "anchored"
    size: int = 1200
    overlap: int = 100
    encoding: str = "o200k_base"
    whole: bool = False

    @property
    def window(self) -> int:
        """Two anchors are more tokens apart than this, twice as many in the mean.

        At a sixth of `size`, almost no stretch between two anchors is longer than `size`.
        """
        return self.size // 6


def chunk_documents(documents: pl.DataFrame, options: ChunkOptions) -> pl.DataFrame:
    """Return the text units of `documents` (columns id, batch, text), ordered by document as given, then ordinal.

    Columns as `TEXT_UNITS`; `text` is `document.text[start_char:end_char]` exactly, `n_tokens` its count,
    `n_sentences` how many of its sentences have a letter or a digit. White space alone is no unit.
    `n_tokens` is at most `size`; only a window of the method `tokens`, made of `size` tokens of the document,
    may have a few more when it is counted on its own.
    """
    rows: list[tuple[str, str, str, int, int, int, str, int, int]] = []
    for document, batch, text in documents.select("id", "batch", "text").iter_rows():
        occurrences: Counter[str] = Counter()
        for ordinal, (start, end) in enumerate(_spans(text, options)):
            unit = text[start:end]
            unit_id = stable_id("text_unit", document, unit, occurrences[unit])
            occurrences[unit] += 1
            tokens = len(encode(unit, options.encoding))
            rows.append((unit_id, batch, document, ordinal, start, end, unit, tokens, count_sentences(unit)))
    return pl.DataFrame(rows, schema=TEXT_UNITS, orient="row")


def _spans(text: str, options: ChunkOptions) -> list[Span]:
    if not text.strip():
        return []
    if options.method == "tokens":
        return [span for span in _token_windows(text, options) if text[slice(*span)].strip()]
    if options.whole and not _is_long(text, options):
        return [_stripped(text, 0, len(text))]
    return _anchored_spans(text, options)


def count_sentences(text: str) -> int:
    """How many of the sentences of `text` have a letter or a digit."""
    return sum(1 for s in sentences(text) if _ALPHANUMERIC.search(text, s.start, s.end))


# --- tokens ---------------------------------------------------------------------------------------------


def _token_windows(text: str, options: ChunkOptions) -> Iterator[Span]:
    """GraphRAG's fixed windows of tokens; an edge inside a character moves to the character's start."""
    tokens = encode(text, options.encoding)
    edge = [*tokenizer(options.encoding).decode_with_offsets(tokens)[1], len(text)]
    start = 0
    while True:
        end = min(start + options.size, len(tokens))
        if edge[start] < edge[end]:
            yield edge[start], edge[end]
        if end == len(tokens):
            return
        start += options.size - options.overlap


# --- anchored -------------------------------------------------------------------------------------------


def _is_long(text: str, options: ChunkOptions) -> bool:
    """Longer than `size` tokens. Text of more than 8 characters a token is not worth counting."""
    return len(text) > 8 * options.size or len(encode(text.strip(), options.encoding)) > options.size


def _stripped(text: str, start: int, end: int) -> Span:
    content = text[start:end]
    return start + len(content) - len(content.lstrip()), start + len(content.rstrip())


class _Cut(IntEnum):
    """The priority of a cut. A heading stays with its section."""

    IN_WORD = 0
    IN_SENTENCE = 1
    AFTER_HEADING = 2
    SENTENCE = 3
    PARAGRAPH = 4
    BEFORE_HEADING = 5


def _anchored_spans(text: str, options: ChunkOptions) -> list[Span]:
    """Units between anchors; a stretch longer than `size` is cut at the best places inside it.

    An anchor outranks every other cut within `window` tokens, so an edit inside one sentence can move at most
    one anchor on each side of it: at most three units are new, as long as no stretch is longer than `size`.
    """
    ends, tokens, priority = _atoms(text, options)

    def span(first: int, last: int) -> Span:
        return _stripped(text, ends[first - 1] if first else 0, ends[last - 1])

    def is_long(first: int, last: int) -> bool:  # the text of several atoms may have a few tokens more than their sum
        return len(encode(text[slice(*span(first, last))], options.encoding)) > options.size

    cuts = _cuts(tokens, priority, options.window, options.size, is_long)
    spans = [span(first, last) for first, last in pairwise([0, *cuts, len(ends)])]
    return [(start, end) for start, end in spans if start < end]


def _atoms(text: str, options: ChunkOptions) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return the atoms, which are never cut: sentences, and pieces of those longer than `size`.

    Their ends in the text, the tokens up to each end, and the priority of the cut after each but the last.
    """
    ends: list[int] = []
    kinds: list[_Cut] = []
    spans = sentences(text)
    heads = [_is_heading(text, s.start) for s in spans]
    for i, sentence in enumerate(spans):
        if _is_long(text[sentence.start : sentence.end], options):
            for cut in _cuts_in_sentence(text[sentence.start : sentence.end], options.size // 4):
                ends.append(sentence.start + cut)
                kinds.append(_Cut.IN_SENTENCE if text[sentence.start + cut - 1].isspace() else _Cut.IN_WORD)
        ends.append(sentence.end)
        if heads[i]:
            kinds.append(_Cut.AFTER_HEADING)
        elif i + 1 < len(spans) and heads[i + 1]:
            kinds.append(_Cut.BEFORE_HEADING)
        else:
            kinds.append(_Cut.PARAGRAPH if sentence.ends_paragraph else _Cut.SENTENCE)

    contents = [text[i:j].strip() for i, j in zip([0, *ends], ends, strict=False)]
    counts = [len(encode(content, options.encoding)) for content in contents]
    hashes = [_hash(f"{left}\x1f{right}") for left, right in pairwise(contents)]
    priority = np.array(kinds[:-1], dtype=np.int64) << 60 | np.array(hashes, dtype=np.int64)
    return ends, np.cumsum(counts, dtype=np.int64), priority


def _is_heading(text: str, start: int) -> bool:
    if not _HEADING.match(text, start):
        return False
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()


def _hash(text: str) -> int:
    """60 bits, so that they fit under the kind of cut in a signed 64-bit integer."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 4


def _cuts(
    position: np.ndarray,
    priority: np.ndarray,
    window: int,
    size: int,
    is_long: Callable[[int, int], bool] = lambda first, last: False,
) -> list[int]:
    """Return indices i, ascending, such that a unit ends before atom i: the anchors, and cuts of too long stretches.

    `position`: cumulative lengths of n atoms, in any unit of length; `priority`: of the n - 1 cuts between. `is_long`:
    whether the atoms [first, last) are too long although their lengths are not.
    """
    # An anchor near an end of the document would leave a fragment. It is dropped only now: had it not taken
    # part in the comparison, an edit at the end would affect cuts two windows away.
    margin = window / 2
    maxima = _local_maxima(position, priority, window)
    anchors = [i + 1 for i in maxima if margin <= position[i] <= position[-1] - margin]
    cuts: list[int] = []
    pending = list(pairwise([0, *anchors, len(position)]))[::-1]
    while pending:
        first, last = pending.pop()
        if last - first > 1 and (_length(position, first, last) > size or is_long(first, last)):
            middle = _best_cut(position, priority, first, last, window, size)
            pending += [(middle, last), (first, middle)]
        else:
            cuts.append(last)
    return cuts[:-1]


def _length(position: np.ndarray, first: int, last: int) -> int:
    return int(position[last - 1] - (position[first - 1] if first else 0))


def _local_maxima(position: np.ndarray, priority: np.ndarray, window: int) -> list[int]:
    """Cuts with a higher priority than every other at most `window` away; of equals the first is higher.

    One pass with a stack of those that no later cut has outranked yet: it meets each cut's nearest better
    neighbor on either side, and a cut is no maximum if one of the two is near.
    """
    places, ranks = position.tolist(), priority.tolist()
    beaten = bytearray(len(ranks))
    stack: list[int] = []
    for i, rank in enumerate(ranks):
        while stack and ranks[stack[-1]] < rank:
            j = stack.pop()
            if places[i] - places[j] <= window:
                beaten[j] = 1
        if stack and places[i] - places[stack[-1]] <= window:
            beaten[i] = 1
        stack.append(i)
    return [i for i, lost in enumerate(beaten) if not lost]


def _best_cut(position: np.ndarray, priority: np.ndarray, first: int, last: int, window: int, size: int) -> int:
    """Return the best place to cut atoms [first, last) in two, first < result < last.

    If one cut is enough: the highest priority that leaves both sides within `size`, and longer than `window`
    if possible. Else the highest of the middle third, so that repeated cutting takes n log n.
    """
    origin = position[first - 1] if first else 0
    places = position[first : last - 1] - origin
    total = _length(position, first, last)
    if total <= 2 * size:
        low, high = max(window, total - size), min(total - window, size)
    else:
        low, high = total // 3, total - total // 3
    i, j = np.searchsorted(places, low, "left"), np.searchsorted(places, high, "right")
    if i < j:
        return first + int(i) + int(np.argmax(priority[first + i : first + j])) + 1
    return first + int(np.argmin(np.abs(places - total / 2))) + 1


def _cuts_in_sentence(text: str, size: int) -> list[int]:
    """Places to cut text without sentence ends into pieces of at most `size` characters, chosen by content.

    Candidates are the starts of words, and where the hash of the last 16 characters is a multiple of 16 (for
    text without spaces); they are chosen among as anchors are. What has no candidate is cut by length.
    """
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    rolling = np.zeros(len(code), dtype=np.uint64)
    for k in range(min(_ROLLING, len(code))):
        rolling[k:] += code[: len(code) - k] * np.uint64(pow(0x9E3779B97F4A7C15, k + 1, 2**64))
    rolling = (rolling ^ (rolling >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(4)
    space = np.fromiter(map(str.isspace, text), dtype=bool, count=len(text))

    word = space[:-1] & ~space[1:]
    candidate = np.flatnonzero(word | (rolling[:-1] % _SAMPLE == 0) & ~space[1:])
    position = np.append(candidate + 1, len(text))
    priority = word[candidate].astype(np.int64) << 60 | rolling[candidate].astype(np.int64)
    ends = position[[i - 1 for i in _cuts(position, priority, size // 4, size)]].tolist() if len(candidate) else []
    pieces = pairwise([0, *ends, len(text)])
    return [cut for start, end in pieces for cut in (*range(start + size, end, size), end)][:-1]
