"""Inflected forms of names: Russian cases, and the endings of German adjectives."""

import functools
import re

from graphrag_assets.text.languages import stem

_CYRILLIC = re.compile("[а-яё]")
_SURNAME = re.compile(r"(.+(?:ов|ев|ёв|ин|ын))(а|у|ым|е|ой|ых|ы)?$")
_ADJECTIVE = re.compile(r"(.*[сц]к|.+н)(?:ий|ый|ого|ому|им|ым|ом|ая|ую|ой|ое|ие|ые|их|ых|ими|ыми)$")
_DOUBLED = re.compile("нн$")  # "анной" has the stem "анн", "анна" the stem "ан"
_OBLIQUE = re.compile(r"[уюеыи]$|[аеоыия][мх]$|^\w+[a-zß]e[nm] ")
_MEN, _WOMEN = ("", "ым", "е"), ("а", "ой")
_GERMAN = re.compile(
    r"(?:\w+(?:isch|lich|ell|iert)|(?:alt|deutsch|dritt|erst|frei|gelb|groß|grün|heilig|hoh|inner"
    r"|jung|klein|lang|mittler|neu|ober|rot|schwarz|unter|vereinigt|vereint|weiß|zweit|äußer))(e[nmrs]?)$"
)


def is_german_adjective(word: str) -> bool:
    """Whether a word has the form of an inflected German adjective, as "Europäischen" has."""
    return _GERMAN.match(word.lower()) is not None


@functools.lru_cache(maxsize=1 << 15)
def russian_root(word: str) -> str:
    """Return what the cases of a lower-case Russian name have in common.

    Surnames keep their suffix: "петрова" is a form of "петров", and not of "пётр".

    >>> [russian_root(word) for word in ("москвы", "петрова", "пётр")]
    ['москв', 'петров', 'петр']
    """
    word = word.replace("ё", "е")
    match = _SURNAME.match(word) or _ADJECTIVE.match(word)
    return _DOUBLED.sub("н", match[1] if match else stem(word, "ru"))


def with_surname(first_name: str, surname: str) -> str:
    """Return a Russian surname in the nominative, after a given name in the nominative.

    >>> with_surname("Иван", "Петрова"), with_surname("Мария", "Петровой")
    ('Петров', 'Петрова')
    """
    match = _SURNAME.match(surname)
    if match is None:
        return surname
    return match[1] if first_name[-1] not in "ая" else f"{match[1]}а"


def is_oblique(key: str) -> bool:
    """Whether a name has an ending that the nominative of a Russian name, or a German adjective, hardly has."""
    return _OBLIQUE.search(key) is not None


def case_key(key: str) -> str:
    """Return a name without what its cases differ in; the name itself in languages without cases, or if that is not
    certain.

    >>> case_key("нижнего новгорода"), case_key("deutscher bundestag"), case_key("great eastern")
    ('нижн новгород', 'deutsch bundestag', 'great eastern')
    """
    words = key.split()
    if len(words) > 1 and (german := _GERMAN.match(words[0])):
        return " ".join([words[0][: german.start(1)], *words[1:-1], re.sub(r"(?<=\w{4})e?s$", "", words[-1])])
    if not _CYRILLIC.match(key):
        return key
    if len(words) > 1:
        return " ".join(map(russian_root, words))
    surname = _SURNAME.match(key)
    if surname is None:
        return russian_root(key)
    # "петрова" is Petrov in the genitive, or his wife.
    ending = surname[2] or ""
    return surname[1] if ending in _MEN else f"{surname[1]}а" if ending in _WOMEN else key
