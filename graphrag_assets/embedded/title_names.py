"""Names that a document's title and the header of a mail state."""

import re

from graphrag_assets.embedded import typing_cues as cues
from graphrag_assets.embedded.tagging import FILE_NAME, is_numbered_part, known_word, lower_kind, word_list, word_tag
from graphrag_assets.embedded.wording import COPULA
from graphrag_assets.text.languages import stop_words
from graphrag_assets.text.words import without_qualifier

_IN_USE = re.compile(rf"[\"'*_]* {COPULA}\b| ?[(,]")
_TITLE_WORD = re.compile(r"[^\W_](?:[\w'’.-]*\w)?")


def type_of_correspondent(name: str) -> str:
    """Return the type of a name before an address of a mail: mostly a person's, whose words are no common ones."""
    words = name.split()
    kind, evidence = cues.type_by_form(words, False, False)
    if evidence >= cues.ENOUGH:
        return kind
    return cues.NAME if any(known_word(word.lower()) for word in words) else cues.PERSON


def title_names(title: str, opening: str, language: str = "en") -> list[str]:
    """Return the names in a document's title of the thing it is about, the full one first; none if the title is no
    name.

    "Mercury (planet)" is "Mercury" too. A title names something when the `opening` of the text uses it ("Graham
    number", "In mathematics, the Graham number is …"), or when its content words have capitals, unless it is one common
    word or has a verb, as headlines have.
    """
    bare = without_qualifier(title).strip("\"'*_ ")
    words = _TITLE_WORD.findall(bare)
    if not words or len(title) > 100 or FILE_NAME.search(title) or is_numbered_part(bare):
        return []
    names = [title, bare] if bare != title else [title]
    if (bare[0].isupper() or bare[0].isdigit()) and _is_used(bare.lower(), opening.lower()):
        return names
    if not any(word[0].isalpha() for word in words):  # a date
        return []
    if bare.islower():  # the name of a file, such as mail1
        return []
    if language != "en":  # German capitalizes all nouns
        content = [word for word in words if word.lower() not in stop_words(language)]
        capitals = all(word[0].isupper() or word[0].isdigit() for word in content)
        return names if capitals and 1 < len(content) < 8 and language != "de" else []
    content = [word for word in words if lower_kind(word.lower()) not in "optdDafs"]
    if not content or len(words) > 8 or not all(any(c.isupper() or c.isdigit() for c in word) for word in content):
        return []
    lowers = [word.lower() for word in content]
    if len(words) == 1:
        return [] if known_word(lowers[0]) and lowers[0] not in word_list("places") else names
    verbs = [word for word in lowers if word_tag(word) in ("VBZ", "VBD", "MD") and word not in word_list("given_names")]
    return [] if verbs and len(words) > 3 else names


def _is_used(name: str, text: str) -> bool:
    """Whether the text defines the name or has an apposition or parenthesis after it."""
    places = (match.span() for match in re.finditer(re.escape(name), text))
    return any(not text[start - 1 : start].isalnum() and _IN_USE.match(text, end) for start, end in places)
