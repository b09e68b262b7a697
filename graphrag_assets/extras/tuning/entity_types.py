"""The types of a prompt profile: counted in an extraction that was free to choose them, and variants merged."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graphrag_assets.contracts.prompt_profile import ProfileType
from graphrag_assets.errors import SettingsError
from graphrag_assets.text.languages import stem
from graphrag_assets.text.words import UNSPACED

MAX_TYPES = 12
COVERED = 0.95
"""So large a share of the mentions has a type of the list, as far as `MAX_TYPES` suffice."""
RARE = 0.02
"""A type with so large a share of the mentions is on the list in any case."""
N_EXAMPLES = 3
_NO_TYPE = {(), ("other",), ("unknown",), ("none",), ("name",)}
_UNSPACED = re.compile(f"([{UNSPACED}])")
_WORD = re.compile(r"[^\W_]+")
_CAMEL_CASE = re.compile(r"(?<=[a-zß-ÿ])(?=[A-Z])")
_UNCOUNTED = frozenset(["a", "an", "the", "is", "are", "was", "were", "be", "been", "being"])
_BEFORE_OF = re.compile(r"(?i)(?<=\w)[\s_-]+of[\s_-].*")

Words = tuple[str, ...]


def found_types(
    mentions: Iterable[tuple[str, str]], merge_heads: bool = True, least: int = 1
) -> tuple[ProfileType, ...]:
    """Return the types of (type, name) mentions that cover nearly all, most frequent first; each of `least` mentions or
    more.

    Types with the same stems are one. With `merge_heads`, so are types with the same head noun, where that is a type
    itself: a STEAM SHIP is a SHIP.
    """
    by_words: dict[Words, Counter[str]] = defaultdict(Counter)
    names: dict[Words, Counter[str]] = defaultdict(Counter)
    for type_, name in mentions:
        by_words[key := _words(type_)][" ".join(type_.split()).upper()] += 1
        names[key][name] += 1
    counts: Counter[Words] = Counter()
    examples: dict[Words, Counter[str]] = defaultdict(Counter)
    for key in by_words.keys() - _NO_TYPE:
        heads = [head for head in _suffixes(key) if head in by_words] if merge_heads else [key]
        counts[heads[-1]] += by_words[key].total()
        examples[heads[-1]] += names[key]
    kinds = [ProfileType(_most(by_words[key], 1)[0], n, "", _most(examples[key])) for key, n in counts.items()]
    return _covering(sorted((kind for kind in kinds if kind.n >= least), key=lambda kind: (-kind.n, kind.type)))


def _words(type_: str) -> Words:
    """Return what decides whether two types are the same: the stems of their words, without articles and forms of "to
    be".

    Spaces, underscores, hyphens and camel case separate words. Of "ship of the line", what stands before "of" counts.

    >>> _words("SteamShips"), _words("steam-ship"), _words("ship of the line")
    (('steam', 'ship'), ('steam', 'ship'), ('ship',))
    """
    spaced = _CAMEL_CASE.sub(" ", _UNSPACED.sub(r" \1 ", _BEFORE_OF.sub("", type_)))
    words = [word.casefold() for word in _WORD.findall(spaced)]
    return tuple(stem(word, "en") for word in [word for word in words if word not in _UNCOUNTED] or words)


def _most(counts: Counter[str], n: int = N_EXAMPLES) -> tuple[str, ...]:
    return tuple(name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n])


def _covering(kinds: Sequence[ProfileType]) -> tuple[ProfileType, ...]:
    total, covered, types = sum(kind.n for kind in kinds), 0, list[ProfileType]()
    for kind in kinds[:MAX_TYPES]:
        if covered >= COVERED * total and kind.n < RARE * total:
            break
        types.append(kind)
        covered += kind.n
    return tuple(types)


def given_types(option: str, corpus_types: Sequence[ProfileType]) -> tuple[ProfileType, ...]:
    """Return the types that a user gives, with the counts and names of those found; `found` if none are given.

    "PERSON, SHIP: a vessel" has commas between entries; where definitions have commas, semicolons.

    Raises:
        SettingsError: an entry has no name.
    """
    entries = [entry.partition(":") for entry in option.split(";" if ";" in option else ",") if entry.strip()]
    if not all(_words(name) for name, _, _ in entries):
        raise SettingsError(f"--types {option!r} is no list of types. Give PERSON, SHIP: a vessel.")
    by_words = {_words(kind.type): kind for kind in corpus_types}
    kinds = [
        replace(
            by_words.get(_words(name), ProfileType("")), type=" ".join(name.split()).upper(), definition=meaning.strip()
        )
        for name, _, meaning in entries
    ]
    return tuple(kinds or corpus_types)


def defined(kinds: Iterable[ProfileType], definitions: Mapping[str, str]) -> tuple[ProfileType, ...]:
    """Return the types with the definitions by type, where they have none yet; on one line each."""
    by_words = {_words(name): " ".join(text.split()) for name, text in definitions.items()}
    return tuple(
        kind if kind.definition else replace(kind, definition=by_words.get(_words(kind.type), "")) for kind in kinds
    )


def listed_type(kinds: Iterable[ProfileType | str]) -> Callable[[str], str]:
    """Return a function that gives the listed type that another one is: the same stems, or the same head noun; else
    "".
    """
    by_words = {_words(name): name for name in (kind if isinstance(kind, str) else kind.type for kind in kinds)}

    def listed(type_: str) -> str:
        return next((by_words[key] for key in _suffixes(_words(type_)) if key in by_words), "")

    return listed


def _suffixes(key: Words) -> Iterator[Words]:
    return (key[place:] for place in range(len(key)))
