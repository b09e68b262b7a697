"""Who may ask what: tokens, each with a filter and the limits of a day and of a minute."""

import hashlib
import hmac
import json
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mcp.server.auth.provider import AccessToken
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, SecretStr, ValidationError, field_validator

from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.query.filters import Filter
from graphrag_assets.runtime.masking import keep_secret

log = logging.getLogger(__name__)

USAGE_FILE = "server_usage.jsonl"
"""In the index folder: a line for each answer with day, name of the token and dollars, and no text."""
_EVERYONE = "everyone"
_LEAST_CHARACTERS = 16


class RefusedError(QueryError):
    """A limit is reached. `retry_after`: seconds after which the request may succeed."""

    def __init__(self, message: str, retry_after: int):
        super().__init__(message)
        self.retry_after = retry_after


class Client(BaseModel):
    """Who has a token. `filter` limits all that it sees; None is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str = _EVERYONE
    token: SecretStr | None = None
    filter: Filter | None = None
    questions_per_day: PositiveInt | None = None
    usd_per_day: PositiveFloat | None = None
    requests_per_minute: PositiveInt | None = None

    @field_validator("token")
    @classmethod
    def _is_long(cls, token: SecretStr) -> SecretStr:
        if len(token.get_secret_value()) < _LEAST_CHARACTERS:
            raise ValueError(f"a token has at least {_LEAST_CHARACTERS} characters; `openssl rand -hex 24` makes one")
        return token

    @field_validator("filter", mode="before")
    @classmethod
    def _as_filter(cls, given: Any) -> Any:
        try:
            return Filter(**given) if isinstance(given, Mapping) else given
        except QueryError as error:
            raise ValueError(str(error)) from None


def in_words(error: ValidationError) -> str:
    """The first error of pydantic as a sentence, without the value that was given."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg'].removeprefix('Value error, ')}." if where else f"{first['msg']}."


EVERYONE = Client()
"""Who asks a server without tokens."""


def clients_of(text: str) -> list[Client]:
    """The clients that GRAPHRAG_SERVER_TOKENS names.

    Args:
        text: one token, or a JSON object: {"sales": {"token": "…", "filter": {"batches": ["sales"]},
            "questions_per_day": 200, "usd_per_day": 5, "requests_per_minute": 30}}.

    Raises:
        SettingsError: it is neither; the message has no token.
    """
    text = text.strip()
    if not text:
        return []
    try:
        given = json.loads(text) if text.startswith("{") else {_EVERYONE: {"token": text}}
        clients = [Client(**{"name": name, **limits}) for name, limits in given.items()]
    except ValidationError as error:
        raise SettingsError(f"GRAPHRAG_SERVER_TOKENS: {in_words(error)}") from None
    except (ValueError, TypeError, AttributeError):
        raise SettingsError(
            'GRAPHRAG_SERVER_TOKENS must be a token, or a JSON object such as {"sales": {"token": "…", "filter": '
            '{"batches": ["sales"]}}}.'
        ) from None
    if missing := [client.name for client in clients if client.token is None]:
        raise SettingsError(f"GRAPHRAG_SERVER_TOKENS: {missing[0]} has no token.")
    for client in clients:
        keep_secret(client.token.get_secret_value() if client.token else None)
    if len({client.token for client in clients}) < len(clients):
        raise SettingsError("GRAPHRAG_SERVER_TOKENS: two clients have the same token.")
    return clients


@dataclass
class Clients:
    """The clients of a server, and what each has asked today and in the last minute.

    Args:
        clients: those with tokens; none: everyone may ask.
        file: keeps the questions of days over restarts.
    """

    clients: Sequence[Client]
    file: Path
    _asked: dict[str, int] = field(default_factory=lambda: defaultdict(int), init=False)
    _spent: dict[str, float] = field(default_factory=lambda: defaultdict(float), init=False)
    _recent: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque), init=False)
    _day: str = field(default="", init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._begin_day()
        with self._lock:
            for line in self.file.read_text().splitlines() if self.file.is_file() else ():
                used = json.loads(line)
                if used["day"] == self._day:
                    self._asked[used["client"]] += 1
                    self._spent[used["client"]] += used["usd"]

    async def verify_token(self, token: str) -> AccessToken | None:
        """The client of a token, in the form of the MCP SDK (`TokenVerifier`)."""
        known = [
            client
            for client in self.clients
            if client.token and hmac.compare_digest(client.token.get_secret_value().encode(), token.encode())
        ]
        return AccessToken(token=token, client_id=known[0].name, scopes=[]) if known else None

    def named(self, name: str | None) -> Client | None:
        """The client of that name; without tokens, everyone."""
        return next((client for client in self.clients if client.name == name), None) if self.clients else EVERYONE

    def admit(self, client: Client, is_question: bool = True) -> None:
        """Count a request of the client; one that is no question counts for the minute only.

        Raises:
            RefusedError: it has reached a limit.
        """
        with self._lock:
            self._begin_day()
            now, recent = time.monotonic(), self._recent[client.name]
            while recent and recent[0] < now - 60:
                recent.popleft()
            if client.requests_per_minute is not None and len(recent) >= client.requests_per_minute:
                raise RefusedError(
                    f"{client.name} may send {client.requests_per_minute} requests a minute.",
                    int(60 - (now - recent[0])) + 1,
                )
            recent.append(now)
            if not is_question:
                return
            tomorrow = 86_400 - int(time.time()) % 86_400
            if client.questions_per_day is not None and self._asked[client.name] >= client.questions_per_day:
                raise RefusedError(f"{client.name} may ask {client.questions_per_day} questions a day.", tomorrow)
            if client.usd_per_day is not None and self._spent[client.name] >= client.usd_per_day:
                raise RefusedError(f"{client.name} may spend US$ {client.usd_per_day:g} a day.", tomorrow)
            self._asked[client.name] += 1

    def charge(self, client: Client, usd: float) -> None:
        """Note what the answer to an admitted question has cost."""
        with self._lock:
            self._spent[client.name] += usd
            if client.questions_per_day is None and client.usd_per_day is None:
                return
            try:
                with self.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"day": self._day, "client": client.name, "usd": round(usd, 6)}) + "\n")
            except OSError as error:
                log.warning("%s cannot be written: limits of a day end with this process. %s", self.file, error)

    def _begin_day(self) -> None:
        today = datetime.now(UTC).date().isoformat()
        if today != self._day:
            self._day = today
            self._asked.clear()
            self._spent.clear()


@dataclass(frozen=True)
class Links:
    """Addresses of passages. With tokens they are signed, so that a link opens in a browser, which has no token.

    `public_url`: the address of the server, without / at its end.
    """

    public_url: str
    clients: Clients

    def passage(self, client: Client, text_unit: str, start: int | None = None, end: int | None = None) -> str:
        """The address of a text unit's page with the characters marked, those of the document from 0."""
        span = "" if start is None or end is None else f"{start}-{end}"
        query = {"span": span} if span else {}
        if client.token:
            query |= {"for": client.name, "signature": _signature(client, text_unit, span)}
        return f"{self.public_url}/api/source/{text_unit}" + (f"?{urlencode(query)}" if query else "")

    def signer(self, text_unit: str, query: Mapping[str, str]) -> Client | None:
        """The client for whom an address was signed; None if the signature is not valid."""
        client = self.clients.named(query.get("for"))
        if client is None or client.token is None:
            return None
        expected = _signature(client, text_unit, query.get("span", ""))
        return client if hmac.compare_digest(expected.encode(), query.get("signature", "").encode()) else None


def _signature(client: Client, text_unit: str, span: str) -> str:
    assert client.token is not None
    message = "\n".join((client.name, text_unit, span)).encode()
    return hmac.new(client.token.get_secret_value().encode(), message, hashlib.sha256).hexdigest()[:32]
