"""What requests to a chat model carry: the parameters that the model accepts, and the way JSON is requested."""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any

from graphrag_assets.llm import provider, structured_output
from graphrag_assets.llm.model_errors import RequestRejected
from graphrag_assets.llm.model_options import ChatOptions, ChatRequest, Structured
from graphrag_assets.llm.retry import REJECTS

_log = logging.getLogger(__name__)
_refused: dict[tuple[str, str | None], set[str]] = {}  # parameters that each model refuses, learned once per process
_modes: dict[tuple[str, str | None], Structured] = {}  # how each model is asked for JSON, learned once per process


class ChatParameters:
    """The parameters of the requests to one chat model; what its server rejects is left out from then on."""

    def __init__(self, options: ChatOptions):
        self._options = options
        self._place = options.model, options.base_url
        self._given: dict[str, Any] = json.loads(options.parameters)

    def of(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request, by litellm's names: those of the settings replace its own."""
        limit = {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
        together = {"temperature": request.temperature, **limit, **self._given}
        return {name: value for name, value in together.items() if value is not None}

    def accepted(self, request: ChatRequest) -> dict[str, Any]:
        """The parameters of a request without those that the model refuses; warns of the given ones once."""
        unsupported = provider.unsupported(self._options.model, self._options.parameters)
        self._drop(unsupported, "litellm knows that it is not supported.")
        refused = self._refused
        return {name: value for name, value in self.of(request).items() if name not in refused}

    @property
    def structured_mode(self) -> Structured:
        """How JSON is requested from the model, as far as is known."""
        if self._place not in _modes:
            _modes[self._place] = provider.structured_mode(self._options)
        return _modes[self._place]

    def adapt(self, request: ChatRequest, mode: Structured, sent: Iterable[str], error: RequestRejected) -> bool:
        """Leave out what the server rejects: the way of requesting JSON, else the parameters that it names.

        `mode` and `sent` are those of the rejected request. False if neither is what it rejects.
        """
        return self._weaken(request, mode, error) or self._drop_named(sent, error)

    def _weaken(self, request: ChatRequest, rejected: Structured, error: RequestRejected) -> bool:
        about_format = any(word in str(error).lower() for word in ("response_format", "json", "schema", "grammar"))
        if request.response_model is None or rejected not in structured_output.WEAKER or not about_format:
            return False
        if _modes[self._place] == rejected:  # else another call has done so
            _modes[self._place] = structured_output.WEAKER[rejected]
        return True

    def _drop_named(self, sent: Iterable[str], error: RequestRejected) -> bool:
        said = str(error).partition(REJECTS)[2]  # without the names of task, text unit and batch
        names = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
        if names:
            self._drop(names, said)
        return bool(names)

    def _drop(self, names: Sequence[str], reason: str) -> None:
        """Send these parameters no more to this model in this process; the first call to do so warns."""
        if new := [name for name in names if name not in self._refused]:
            self._refused.update(new)
            _log.warning("%s refuses %s, so it is left out: %s", self._options.where, ", ".join(new), reason)

    @property
    def _refused(self) -> set[str]:
        return _refused.setdefault(self._place, set())
