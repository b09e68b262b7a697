"""Every option of the index, typed and documented: from `GRAPHRAG_*` environment variables or a `.env` file.

The defaults are the embedded default: no API key, no network. Secrets never become settings; the model layer
reads them from the environment at the moment of a call.
"""

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit
from urllib.request import url2pathname

from dotenv import dotenv_values
from pydantic import AllowInfNan, BaseModel, BeforeValidator, Field, NonNegativeFloat, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from graphrag_assets.errors import SettingsError
from graphrag_assets.ids import stable_id
from graphrag_assets.runtime.outgoing import keep_secret, without_credentials


def variable(name: str) -> str:
    """Return a variable as the environment, or else `.env`, has it; empty where neither does. For what is no
    setting.
    """
    return os.environ.get(name) or dotenv_values(".env").get(name) or ""


_PREFIX = "GRAPHRAG_"
OTHER_VARIABLES = (
    *("GRAPHRAG_CHAT_API_KEY", "GRAPHRAG_EMBEDDING_API_KEY", "GRAPHRAG_SERVER_TOKENS"),
    *("GRAPHRAG_DOCUMENTS", "GRAPHRAG_MEMORY", "GRAPHRAG_HOST", "GRAPHRAG_BIND"),
)
"""Variables that are no settings: secrets, and those of the files in deploy/."""

ONNX = "onnx:"
"""Prefix of embedding models that run in this process."""

Source = Literal["model", "embedded", "off"]


class Choices(NamedTuple):
    """What performs each task of indexing: a chat model, or the embedded default. Only claims can be off."""

    extraction: Source
    summaries: Source
    reports: Source
    claims: Source

    def __str__(self) -> str:
        return ", ".join(f"{task}: {source}" for task, source in self._asdict().items())


METHODS = {
    "standard": Choices("model", "model", "model", "model"),
    "fast": Choices("embedded", "embedded", "model", "embedded"),
    "embedded": Choices("embedded", "embedded", "embedded", "embedded"),
}
_BY_MODEL = ("model", "standard", "fast")
"""Values of settings that give a task to a chat model."""

Use = Literal["extraction", "query"]
"""What a chat model is used for: indexing, or questions. Each may have a model and parameters of its own."""
_PARAMETERS_OF = ("extraction", "query", "embedding")
_ELSEWHERE = {
    *("model", "messages", "response_format", "tools", "n", "stream", "stream_options", "mock_response", "fallbacks"),
    *("timeout", "request_timeout", "max_retries", "num_retries", "api_base", "base_url"),
}
_SECRET = re.compile(r"(?i)(?:key|token|secret|password|credentials?|headers)$")


_Price = Annotated[NonNegativeFloat, AllowInfNan(False)] | None


class Prices(BaseModel, extra="forbid"):
    """Prices of a million tokens in US dollars; None: litellm's."""

    chat_input: _Price = None
    chat_output: _Price = None
    embedding: _Price = None


def unknown_variables() -> list[str]:
    """Return a sentence for each variable called GRAPHRAG_… that nothing reads; the name only, its value may be a
    secret.

    Variables that the `.env` file refers to, as in `GRAPHRAG_CHAT_API_KEY=${GRAPHRAG_API_KEY}`, are read.
    """
    names = [*(f"GRAPHRAG_{name.upper()}" for name in Settings.model_fields), *OTHER_VARIABLES]
    file = Path(".env")
    referred = re.findall(r"\$\{(\w+)", file.read_text(encoding="utf-8")) if file.is_file() else []
    variables = dict.fromkeys(name.upper() for name in (*os.environ, *dotenv_values(".env")))
    unknown = [name for name in variables if name.startswith(_PREFIX) and name not in (*names, *referred)]
    return [f"{name} is not a setting and is ignored. {_meant(name, names)}" for name in unknown]


def _meant(name: str, names: Sequence[str]) -> str:
    by_ending = {one.removeprefix(_PREFIX): one for one in names}  # the prefix would make all names similar
    similar = difflib.get_close_matches(name.removeprefix(_PREFIX), by_ending, n=1, cutoff=0.75)
    return f"Did you mean {by_ending[similar[0]]}?" if similar else "docs/models.md lists the settings."


def names_in(names: str) -> tuple[str, ...]:
    """Return names that commas separate."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _problem(error: ErrorDetails) -> str:
    """Return what is wrong with a setting. Parameters are not shown: people put keys there."""
    name, *inside = map(str, error["loc"])
    value = "" if inside or name == "model_parameters" else f"={error['input']!r}"
    where = "".join(f"{part}: " for part in inside)
    return f"GRAPHRAG_{name.upper()}{value}: {where}{error['msg'].removeprefix('Value error, ')}"


class Settings(BaseSettings):
    """The options, read once per process. `Settings.load()` turns a bad value into a clear error."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_file=".env", extra="ignore", frozen=True)

    data: Path = Field(Path("data"), description="Folder that holds input/ and index/.")
    input: str = Field(
        "",
        description="Input folder or URL (s3://…), or a table: "
        "duckdb:///file.duckdb?table=raw.tickets; default: input/ in the data folder.",
    )
    batch_by: str = Field(
        "entry",
        pattern=r"^(entry|(depth|hash)=[1-9]\d{0,3})$",
        description="What a batch of the input folder is. entry: an entry directly under it; depth=2: one two levels "
        "below it; hash=64: one of 64 sets of files.",
    )

    file_pattern: str = Field(
        "",
        description="Regular expression that the path of a file in the input folder must contain for the file to be "
        "read; unset: all files.",
    )
    text_column: str = Field("text", description="Column of structured files that holds the text.")
    title_column: str = Field("title", description="Column of structured files that holds the title.")
    id_column: str = Field("id", description="Column of structured files that identifies a row.")
    date_column: str = Field(
        "",
        description="Column of structured files, or field of front matter, that holds the date of a document; a value "
        "that is no date becomes a row of index_errors. Unset: document_date, else date.",
    )
    metadata_columns: str = Field(
        "",
        description="Columns of structured files, separated by commas, that are put before the text of each text unit: "
        "in its context and in what a chat model extracts from. They do not count as its tokens.",
    )
    automation: Literal["off", "on"] = Field(
        "off", description="on: the sensors run from the start; off: they run once switched on in the UI."
    )

    text_encoding: str = Field(
        "", description="Encoding of text files that are not UTF-8, such as windows-1252; unset: detected per file."
    )

    tokenizer: Literal["o200k_base", "cl100k_base"] = Field("o200k_base", description="Tokenizer that counts tokens.")
    chunking: Literal["anchored", "tokens"] = Field(
        "anchored",
        description="anchored: at sentences chosen by content, so edits stay local; tokens: GraphRAG's fixed window.",
    )
    chunk_size: int | None = Field(
        None,
        ge=50,
        description="Maximum tokens per text unit; unset: 1200, or 2600 with chunking=anchored and a chat model, whose "
        "prompt is sent with each text unit. Anchored text units have a third of it in the mean.",
    )

    max_cluster_size: int = Field(
        10, ge=2, description="Communities with more members are split further. A hub with its leaves stays whole."
    )

    chat_model: str = Field(
        "",
        description="Chat model of indexing and questions, as litellm names it (openai/gpt-…, ollama_chat/…); unset: "
        "the embedded default.",
    )
    embedding_model: str = Field(
        "",
        description="Embedding model: onnx:bge-small (packaged, runs on this machine), or a provider's as litellm "
        "names it; unset: no vectors, and searches rank by BM25 and the graph.",
    )
    chat_base_url: str = Field("", description="OpenAI-compatible server of the chat model; key: _CHAT_API_KEY.")
    embedding_base_url: str = Field(
        "", description="OpenAI-compatible server of the embedding model; key: _EMBEDDING_API_KEY."
    )
    method: Literal["", "standard", "fast", "embedded"] = Field(
        "",
        description="What performs the tasks of indexing. standard: a chat model; fast: the embedded default extracts, "
        "and a chat model writes reports from the text units; embedded: no chat model. Unset: standard with a chat "
        "model, embedded without.",
    )
    claims: Literal["", "model", "embedded", "off"] = Field(
        "", description="What extracts claims: off (no claims), model or embedded; unset: as GRAPHRAG_METHOD says."
    )
    extraction_model: str = Field("", description="Chat model of indexing; unset: GRAPHRAG_CHAT_MODEL.")
    query_model: str = Field("", description="Chat model that answers questions; unset: GRAPHRAG_CHAT_MODEL.")
    model_parameters: Annotated[dict[str, Any] | None, BeforeValidator(lambda value: value or None)] = Field(
        None,
        description="Parameters of models as JSON, by litellm's names: those of chat models; under extraction or query "
        "those of indexing or questions alone, where null removes one; under embedding those of the embedding model: "
        '{"temperature": 0, "query": {"temperature": 0.7}, "embedding": {"dimensions": 512}}.',
    )
    embedding_max_tokens: int = Field(
        8191,
        ge=32,
        description="Maximum tokens of a text that the embedding model takes; longer ones are cut.",
    )
    prompts_dir: str = Field("", description="Folder of prompt templates that replace the built-in ones.")
    entity_types: str = Field(
        "organization, person, geo, event", description="Entity types requested from the chat model."
    )
    relationship_types: str = Field(
        "", description="Relationship types that the chat model is to prefer, separated by commas; unset: any."
    )
    claim_description: str = Field(
        "",
        description="What counts as a claim, in words for the chat model; unset: the words of the built-in prompt. "
        "Claims are about entities of GRAPHRAG_ENTITY_TYPES.",
    )
    max_gleanings: int = Field(1, ge=0, description="Rounds in which the chat model is asked for what it missed.")
    language: str = Field("", description="Output language of the chat model; unset: the language of the documents.")
    concurrency: int = Field(25, ge=1, description="Maximum concurrent model calls.")
    requests_per_minute: int | None = Field(None, ge=1, description="Maximum model calls per minute.")
    tokens_per_minute: int | None = Field(None, ge=1, description="Maximum tokens per minute.")
    request_timeout: float = Field(
        180.0, gt=0, description="Timeout of a model call in seconds, for chat and embeddings."
    )
    budget_usd: float | None = Field(
        None, ge=0, description="Maximum US dollars that a run, and all runs of a day, may spend on models."
    )
    usd_per_million: Annotated[Prices | None, BeforeValidator(lambda value: value or None)] = Field(
        None,
        description="Prices of a million tokens in US dollars as JSON, where litellm's table lacks them: "
        '{"chat_input": 2, "chat_output": 8, "embedding": 0.02}.',
    )
    ledger_url: str = Field(
        "",
        description="URL of a ledger in PostgreSQL, as SQLAlchemy writes it; unset: ledger.sqlite in the index folder.",
    )

    memory_limit: str = Field(
        "1.2GB",
        pattern=r"^\d+(\.\d+)?\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$",
        description="Memory that one query of DuckDB may use, such as 500MB; what is more goes to the spill folder.",
    )

    @field_validator("file_pattern")
    @classmethod
    def _is_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"it is not a regular expression: {error}") from None
        return pattern

    @field_validator("text_encoding")
    @classmethod
    def _is_text_encoding(cls, name: str) -> str:
        try:
            "a".encode(name or "utf-8")
        except LookupError:
            raise ValueError("Python has no text encoding of this name") from None
        return name

    @field_validator("model_parameters")
    @classmethod
    def _are_parameters(cls, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, value in (parameters or {}).items():
            if name in _PARAMETERS_OF and not isinstance(value, Mapping):
                raise ValueError(
                    f'the parameters of {name} must be an object such as {{"{name}": {{"temperature": 0}}}}'
                )
            for parameter in value if name in _PARAMETERS_OF else (name,):
                if parameter in _ELSEWHERE:
                    raise ValueError(
                        f"{parameter!r} is not a model parameter here; docs/models.md names the setting for it"
                    )
                if _SECRET.search(parameter):
                    raise ValueError(
                        f"{parameter!r} may hold a secret: set the provider's own variable in the environment"
                    )
        return json.loads(json.dumps(parameters, sort_keys=True))  # fingerprints hold for them in any order

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # parameters are a mapping, which has no hash

    @classmethod
    def load(cls, **overrides: Any) -> "Settings":
        """Return Settings from the environment, with `overrides` on top.

        Raises:
            SettingsError: a value does not fit; the message names the variable, the value and the remedy.
        """
        for value in overrides.values():
            keep_secret(value if isinstance(value, str) and "://" in value else None)
        try:
            settings = cls(**overrides)
        except ValidationError as error:
            raise SettingsError("Bad setting. " + "; ".join(map(_problem, error.errors()))) from None
        settings._check_choices()
        return settings

    def _check_choices(self) -> None:
        """Raise the error of a task that is given to a chat model although there is none."""
        if self.model_tasks and not self.model_of("extraction"):
            by_model = {"CLAIMS": self.claims, "METHOD": self.method}
            cause = next(f"GRAPHRAG_{name}={value}" for name, value in by_model.items() if value in _BY_MODEL)
            raise SettingsError(
                f"{cause} needs a chat model: set GRAPHRAG_CHAT_MODEL or GRAPHRAG_EXTRACTION_MODEL, or unset it."
            )
        if self.choices.claims == "model" and self.choices.extraction == "embedded":
            raise SettingsError(
                "GRAPHRAG_CLAIMS=model needs GRAPHRAG_METHOD=standard: one request extracts entities and claims. Set "
                "that too, or GRAPHRAG_CLAIMS=embedded or off."
            )

    @property
    def method_in_force(self) -> str:
        """The method: as it is set, else standard with a chat model, embedded without."""
        return self.method or ("standard" if self.model_of("extraction") else "embedded")

    @property
    def choices(self) -> Choices:
        """What performs each task: by the method, claims also by their own setting."""
        choices = METHODS[self.method_in_force]
        return choices._replace(claims=self.claims) if self.claims else choices

    def model_of(self, use: Use) -> str:
        """Return the chat model for a use; empty if there is none."""
        return (self.extraction_model if use == "extraction" else self.query_model) or self.chat_model

    def parameters_of(self, use: Use | Literal["embedding"]) -> dict[str, Any]:
        """Return the parameters of a model for a use, by litellm's names; None: not to be sent."""
        shared = dict(self.model_parameters or {})
        by_use = {name: shared.pop(name, {}) for name in _PARAMETERS_OF}
        return by_use[use] if use == "embedding" else shared | by_use[use]

    @property
    def prices(self) -> Prices:
        """The prices of the settings."""
        return self.usd_per_million or Prices()

    @property
    def embedding_name(self) -> str:
        """The name that a provider's vectors are stored under: the model, with a hash of its parameters if any."""
        parameters = self.parameters_of("embedding")
        return f"{self.embedding_model}#{stable_id(parameters)[:8]}" if parameters else self.embedding_model

    @property
    def method_in_words(self) -> str:
        """The method and its choices."""
        return f"{self.method_in_force} ({self.choices})"

    @property
    def reports_from_text(self) -> bool:
        """Whether reports are written from text units: by a chat model, over a graph without a model's descriptions."""
        return self.choices.reports == "model" and self.choices.extraction == "embedded"

    @cached_property
    def input_folder(self) -> str:
        """Where the batches are: a local path, or the URL of something that is not local."""
        scheme, separator, path = self.input.partition("://")
        if separator and scheme in ("file", "local"):
            return url2pathname(path)
        return self.input or str(self.data / "input")

    @property
    def input_as_given(self) -> str:
        """The input folder as a name that does not change when the project is moved."""
        if not self.input:
            return "the default input folder"
        folder = self.input_folder
        if "://" not in folder:
            return str(Path(folder).resolve())
        table = parse_qs(urlsplit(folder).query).get("table", [])
        return " ".join([without_credentials(folder), *table])

    @cached_property
    def metadata_column_list(self) -> tuple[str, ...]:
        """The columns put before the text, one by one."""
        return names_in(self.metadata_columns)

    @property
    def max_unit_tokens(self) -> int:
        """Maximum tokens per text unit: `chunk_size`, or its default for these settings."""
        return self.chunk_size or (2600 if self.choices.extraction == "model" and self.chunking == "anchored" else 1200)

    @property
    def embeds_locally(self) -> bool:
        """Whether the embedding model runs in this process: it costs nothing and needs no ledger."""
        return self.embedding_model.startswith(ONNX)

    @property
    def calls_models(self) -> bool:
        """Whether indexing calls models of a provider, which may cost money."""
        return self.asks_chat_model or self.embeds_remotely

    @property
    def embeds_remotely(self) -> bool:
        """Whether the embedding model is a provider's."""
        return bool(self.embedding_model) and not self.embeds_locally

    @property
    def asks_chat_model(self) -> bool:
        """Whether indexing sends requests to a chat model."""
        return bool(self.model_tasks)

    @property
    def model_tasks(self) -> list[str]:
        """The tasks of indexing that are given to a chat model."""
        return [task for task, source in self.choices._asdict().items() if source == "model"]

    @cached_property
    def index_folder(self) -> Path:
        """Where the databases are."""
        return self.data / "index"

    @property
    def questions_file(self) -> Path:
        """The user's questions, docs/quality.md; where the file is, each new publication is measured by them."""
        return self.data / "questions.jsonl"

    @property
    def ledger_file(self) -> Path:
        """The ledger of an index that has one of its own."""
        return self.index_folder / "ledger.sqlite"

    def as_rows(self) -> dict[str, str | None]:
        """Name and value of each setting that shapes the index, None for no limit; where things are stored is left out.

        What performs a task is given as it is chosen, not as it is set.
        """
        where = {"data", "input", "ledger_url", "automation", "memory_limit"}
        in_force = {"chunk_size": self.max_unit_tokens, "method": self.method_in_force, "claims": self.choices.claims}
        settings = self.model_dump(exclude=where) | in_force
        return {name: None if value is None else without_credentials(str(value)) for name, value in settings.items()}
