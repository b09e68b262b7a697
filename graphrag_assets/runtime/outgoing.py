"""What leaves the process as text for people: without secrets in use, control characters and foreign markup.

Titles, names, ids and messages come from documents, models and servers. In a terminal an escape sequence could rewrite
what is shown; in Markdown a link could lead anywhere, and an image could send what stands beside it to its server.

Secrets are masked by value, because a server may echo a key in any form: those of environment variables whose names
say that they hold one, as the providers' do; user and password of URLs in the environment; and those given in code.
What merely looks like a key, or like a URL with a password, is masked too. Of the query of a URL, the values are masked
whose names say that they are secret.
"""

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from dotenv import dotenv_values

MASK = "…"
_SECRET_NAME = re.compile(
    r"(?i)(?:key|token|_pat|secret|password|passwd|pwd|passphrase|credentials?|signature|webhook|alert_url)(?![a-z])"
)
_USER = re.compile(r"(?<=://)(?:[^\s/@:'\"<>]*:[^\s'\"<>]*|[^\s/@'\"<>]+)@")
# Without the end of a bracket around the URL.
_QUERY = re.compile(r"(\w+://[^\s?'\"<>]+)\?[^\s'\"<>]*?(?=[)\]},;.]{0,4}(?:[\s'\"<>]|$))")
_URL = re.compile(r"\w+://[^\s'\"<>]+")
_SECRET_IN_URL = re.compile(  # by its name, as in signed URLs too; or without one, such as ?0123456789abcdef
    r"(?i)([?&;#][\w.%~-]*(?:key|token|secret|passw|pwd|passphrase|credential|signature|webhook|auth|session|jwt)[\w.%~-]*="
    r"|[?&;#](?:sig|code|pat|pass)=|\?(?=[^=&#;]{12,}(?:[&#;]|$)))[^&#]+"
)
_LIKE_A_KEY = re.compile(
    r"(?i)\b(?:(?:sk|pk|rk|gsk|xai|hf|gh[pousr]|github_pat)[-_]|aiza)[a-z0-9*_-]{8,}|\bbearer\s+[\w.~+/=*-]{6,}|\bbasic\s+[a-z0-9+/=]{12,}"
)
_SHORTEST = 8
"""Shorter keys are placeholders, such as "none" or "ollama"."""
_SHORTEST_PART = 3
"""Shorter parts of passwords are no secret by themselves, and may be words."""
_UNMISTAKABLE = 12
"""Values of this length are masked inside words too; shorter ones, which may be words, only by themselves."""

_LAST_WORD = re.compile(r"[^\s\u2e80-\U0010ffff]*$")
"""Up to white space, or a character of the scripts that put none between words."""

_secrets_of_code: set[str] = set()


def without_credentials(text: str) -> str:
    """Return the text with its URLs shortened to the places that they name: no user, no password, no query.

    A password may contain @ and /, as those of databases do.

    >>> without_credentials("https://me:p@ss/word@models.example/v1?token=t is down")
    'https://models.example/v1 is down'
    >>> without_credentials("It failed (postgresql://db/x?a={b}&password=c;d), again.")
    'It failed (postgresql://db/x), again.'
    """
    return _QUERY.sub(r"\1", _USER.sub("", text))


def keep_secret(value: str | None) -> None:
    """Mask a value given in code from now on: a key, or a URL with user and password."""
    if value and "://" in value:
        _secrets_of_code.update(_parts_of_url(value))
    elif value and len(value) >= _SHORTEST:
        _secrets_of_code.add(value)


def mask(text: str) -> str:
    """Return the text without secrets in use, credentials in URLs, and anything that looks like a key.

    Masking twice changes nothing more.
    """
    return masker()(text)


def masker() -> Callable[[str], str]:
    """`mask` with the secrets in use now, for many texts: finding them looks at the environment and `.env`."""
    pattern = _pattern(_secrets_of_code | _of_environment())

    def masked(text: str) -> str:
        text = _URL.sub(lambda url: _SECRET_IN_URL.sub(rf"\1{MASK}", url[0]), _USER.sub("", text))
        if pattern:
            text = re.sub(pattern, MASK, text)
        return _LIKE_A_KEY.sub(MASK, text)

    return masked


class ReplyMasker:
    """Masks the secrets in use in a model's reply, which is stored and may come in pieces.

    Only those that cannot be words: a password "postgres" would blank out the subject of an answer. URLs, and what only
    looks like a key, stay: they come from the documents.
    """

    def __init__(self) -> None:
        self._pattern = _pattern_of_no_words(_of_environment().union(_secrets_of_code))
        self._pending = ""

    def feed(self, piece: str, last: bool = False) -> str:
        """Return what may be shown now; the last word is kept back until it is complete."""
        text = self._pending + piece
        end = len(text) if last else _LAST_WORD.search(text).start()  # type: ignore[union-attr]  # matches always
        self._pending = text[end:]
        return re.sub(self._pattern, MASK, text[:end])


def mask_reply(text: str) -> str:
    """Return a model's whole reply, masked as by `ReplyMasker`."""
    return ReplyMasker().feed(text, last=True)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names do not say that they are secret, for processes that need none."""
    return {name: value for name, value in environment.items() if not _SECRET_NAME.search(name)}


def _of_environment() -> frozenset[str]:
    """Return the secrets in the environment and `.env`."""
    version = None
    with contextlib.suppress(OSError):
        file = Path(".env").stat()
        version = file.st_dev, file.st_ino, file.st_mtime_ns, file.st_size
    return _secrets(tuple(os.environ.items()), version)


@functools.lru_cache(maxsize=1)
def _secrets(environment: tuple[tuple[str, str], ...], _: object) -> frozenset[str]:
    """Return the secrets in an environment and a version of `.env`. Each reply of a model asks for them."""
    secrets: set[str] = set()
    for name, value in (dotenv_values(".env") | dict(environment)).items():
        if value and "://" in value:
            secrets.update(_parts_of_url(value))
        named_secret = value and _SECRET_NAME.search(name) and len(value) >= _SHORTEST
        if value and named_secret and not os.path.exists(value):  # noqa: PTH110  (`Path` refuses long names)
            parts = re.split(r";\w+=", value) if ";" in value else ()  # connection strings: AccountName=…;AccountKey=…
            secrets.update((value, *(part for part in parts if len(part) >= _SHORTEST)))
    return frozenset(secrets)


def _parts_of_url(url: str) -> Iterator[str]:
    """User and password of a URL, and the values of its query whose names say that they are secret.

    Libraries disagree on where a password with @ or / ends, so its parts are secrets too.
    """
    for credentials in _USER.findall(url):
        password = credentials.removesuffix("@").partition(":")[2]
        if password:
            parts = re.split("[@/:?#]", f"{password}@{unquote(password)}")
            yield from (credentials, password, *(part for part in parts if len(part) >= _SHORTEST_PART))
    query = url.partition("?")[2]
    yield from (value for name, value in parse_qsl(query) if _SECRET_NAME.search(name))


@functools.lru_cache(maxsize=1)
def _pattern_of_no_words(secrets: frozenset[str]) -> str:
    no_words = {one for one in secrets if len(one) >= (_SHORTEST if not one.isalpha() else _UNMISTAKABLE)}
    return _pattern(no_words) or "(?!)"  # which matches nothing


def _pattern(secrets: Set[str]) -> str:
    """Return a pattern of the secrets in all forms in which they are echoed, the longest first."""
    forms: set[str] = set()
    for plain in secrets | set(map(unquote, secrets)):
        in_json = json.dumps(plain)[1:-1]
        forms |= {plain, quote(plain, safe=""), quote(plain), quote_plus(plain), in_json, in_json.replace("/", r"\/")}
    return "|".join(
        re.escape(form) if len(form) >= _UNMISTAKABLE else rf"(?<!\w){re.escape(form)}(?!\w)"
        for form in sorted(forms - {"", MASK}, key=lambda form: (-len(form), form))
    )


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line break, and those that change the direction of text."""
_BARE = r"(?<=\w):(?=//)|(?<=\bwww)\."  # links that need no markup
_MARKUP = re.compile(rf"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)|!(?=\[)|{_BARE}", re.IGNORECASE)
"""What begins or ends markup within a line."""
_ACTIVE = re.compile(rf"!(?=\[)|(?<=\])[(\[:]|{_BARE}", re.IGNORECASE)
"""What makes images and links."""
_CHARACTER = re.compile(r"&(?=#?\w+;)")


def printable(text: str) -> str:
    r"""Return the text with control characters as symbols.

    >>> printable("a\x1b[31mb")
    'a␛[31mb'
    """
    return _CONTROL.sub(lambda match: _symbol(ord(match[0])), text)


def shown(text: str) -> str:
    """Return the text without secrets and control characters: what a message may have."""
    return printable(mask(text))


def listed(names: Sequence[str], most: int = 20, separator: str = ", ") -> str:
    """Return the names in one line; of more than `most` the first ones, and how many there are besides.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def _symbol(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"


def as_markdown(text: str) -> str:
    r"""Return the text as one line of Markdown that shows it literally; secrets are masked.

    >>> print(as_markdown("![x](https://e.example) | <b>\x1b[1m"))
    \!\[x\](https\://e.example) \| &lt;b>␛\[1m
    """
    line = " ".join(printable(mask(text).replace("\r", " ")).split())
    return _without_html(_MARKUP.sub(r"\\\g<0>", line))


def safe_markdown(text: str) -> str:
    r"""Markdown with its lists and emphasis, whose images, links and HTML are shown literally; secrets are masked.

    >>> print(safe_markdown("**Yes** [1](https://e.example) <img src=x>"))
    **Yes** [1]\(https\://e.example) &lt;img src=x>
    """
    return _without_html(_ACTIVE.sub(r"\\\g<0>", shown(text)))


def _without_html(text: str) -> str:
    return _CHARACTER.sub("&amp;", text).replace("<", "&lt;")


def literal_markdown(text: str) -> str:
    """Return the text as Markdown that shows it line by line as it is; secrets are masked."""
    literal = shown(text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", literal)), 3)
    return f"{fence}\n{literal}\n{fence}"
