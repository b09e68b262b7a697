"""Who may ask: tokens, each with a filter of what its client may see; and links that are signed for a client."""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from mcp.server.auth.provider import AccessToken
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_validator

from graphrag_assets.errors import QueryError, SettingsError
from graphrag_assets.query.options import Filter
from graphrag_assets.runtime.outgoing import keep_secret

_MIN_CHARACTERS = 16


class Client(BaseModel):
    """Who has a token. `filter` limits all that it sees; None is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str = "everyone"
    token: SecretStr | None = None
    filter: Filter | None = None

    @field_validator("token")
    @classmethod
    def _is_long(cls, token: SecretStr) -> SecretStr:
        if len(token.get_secret_value()) < _MIN_CHARACTERS:
            raise ValueError(f"a token has at least {_MIN_CHARACTERS} characters; `openssl rand -hex 24` makes one")
        return token

    @field_validator("filter", mode="before")
    @classmethod
    def _as_filter(cls, value: Any) -> Any:
        return Filter(**value) if isinstance(value, dict) else value

    @field_validator("filter")
    @classmethod
    def _limits_text(cls, filter: Filter | None) -> Filter | None:
        if filter and (filter.entity_types is not None or filter.relationship_types is not None):
            raise ValueError("entity_types and relationship_types hide no text, so they are not for tokens")
        return filter


EVERYONE = Client()
"""Who asks a server without tokens."""


def in_words(error: ValidationError) -> str:
    """Return the first error of pydantic as a sentence, without the value that was given."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg'].removeprefix('Value error, ')}." if where else f"{first['msg']}."


def clients_of(text: str) -> list[Client]:
    """Return the clients that GRAPHRAG_SERVER_TOKENS names.

    Args:
        text: one token, or a JSON object: {"sales": {"token": "…", "filter": {"batches": ["sales"]}}}.

    Raises:
        SettingsError: it is neither; the message has no token.
    """
    text = text.strip()
    if not text:
        return []
    try:
        rights_by_name = json.loads(text) if text.startswith("{") else {EVERYONE.name: {"token": text}}
        clients = [Client(**{"name": name, **rights}) for name, rights in rights_by_name.items()]
    except ValidationError as error:
        raise SettingsError(f"GRAPHRAG_SERVER_TOKENS: {in_words(error)}") from None
    except QueryError as error:  # of a filter
        raise SettingsError(f"GRAPHRAG_SERVER_TOKENS: {error}") from None
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


@dataclass(frozen=True)
class Access:
    """The clients of a server, and the addresses of passages.

    With tokens these are signed, so that a link opens in a browser, which sends no token.

    Args:
        clients: those with tokens; none: everyone may ask.
        public_url: the address of the server, without / at its end; "" where nothing is served.
    """

    clients: Sequence[Client]
    public_url: str

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the client of a token, in the form of the MCP SDK (`TokenVerifier`)."""
        matches = [
            client
            for client in self.clients
            if client.token and hmac.compare_digest(client.token.get_secret_value().encode(), token.encode())
        ]
        return AccessToken(token=token, client_id=matches[0].name, scopes=[]) if matches else None

    def named(self, name: str | None) -> Client | None:
        """Return the client of that name; without tokens, everyone."""
        return next((client for client in self.clients if client.name == name), None) if self.clients else EVERYONE

    def url(self, client: Client, path: str, query: Mapping[str, Any], days: int | None = None) -> str | None:
        """Return an address that opens in a browser, for so many days; None where nothing is served."""
        if not self.public_url:
            return None
        parameters = {name: str(value) for name, value in query.items()}
        if client.token:
            parameters |= {"for": client.name} | ({"until": str(int(time.time()) + days * 86_400)} if days else {})
            parameters["signature"] = _signature(client.token, path, parameters)
        return f"{self.public_url}{path}" + (f"?{urlencode(parameters)}" if parameters else "")

    def passage_url(
        self, client: Client, publication: int, text_unit: str | None, span: tuple[int, int] | None = None
    ) -> str | None:
        """Return the address of a text unit's page with these characters of it marked."""
        place = {"publication": publication} | ({"span": f"{span[0]}-{span[1]}"} if span else {})
        return self.url(client, f"/source/{quote(text_unit, safe='')}", place) if text_unit else None

    def signer(self, path: str, query: Mapping[str, str]) -> Client | None:
        """Return the client for whom an address was signed; None if the signature is not valid, or over."""
        client = self.named(query.get("for"))
        if client is None or client.token is None:
            return None
        expected = _signature(client.token, path, {name: query[name] for name in query if name != "signature"})
        is_valid = hmac.compare_digest(expected.encode(), query.get("signature", "").encode())
        return client if is_valid and time.time() < int(query.get("until", "9" * 12)) else None


def _signature(token: SecretStr, path: str, query: Mapping[str, str]) -> str:
    signed = f"{path}?{urlencode(sorted(query.items()))}"
    return hmac.new(token.get_secret_value().encode(), signed.encode(), hashlib.sha256).hexdigest()[:32]
