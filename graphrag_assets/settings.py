"""Every option of the index, typed and documented: from `GRAPHRAG_*` environment variables or a `.env` file.

The defaults are the embedded default: no API key, no network. Secrets never become settings; the model layer
reads them from the environment at the moment of a call.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.request import url2pathname

from dotenv import dotenv_values
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from graphrag_assets.errors import SettingsError
from graphrag_assets.masking import keep_secret, without_credentials


def variable(name: str) -> str:
    """A variable as the environment, or else `.env`, has it; empty where neither does. For what is no setting."""
    return os.environ.get(name) or dotenv_values(".env").get(name) or ""


ONNX = "onnx:"
"""Prefix of embedding models that run in this process."""


class Settings(BaseSettings):
    """The options, read once per process. `Settings.load()` turns a bad value into a clear error."""

    model_config = SettingsConfigDict(env_prefix="GRAPHRAG_", env_file=".env", extra="ignore", frozen=True)

    data: Path = Field(Path("data"), description="Folder that holds input/ and index/.")
    input: str = Field("", description="Input folder or URL (s3://…); default: input/ in the data folder.")

    text_column: str = Field("text", description="Column of structured files that holds the text.")
    title_column: str = Field("title", description="Column of structured files that holds the title.")
    id_column: str = Field("id", description="Column of structured files that identifies a row.")
    settle_seconds: float = Field(
        5.0, ge=0, description="The sensor waits until the files of a batch are this many seconds old."
    )
    automation: Literal["off", "on"] = Field(
        "off", description="on: the sensors run from the start; off: they run once switched on in the UI."
    )
    nightly_cron: str = Field("0 3 * * *", description="When the schedule nightly_refresh runs, once it is on.")
    max_document_mb: float = Field(
        10, gt=0, description="Maximum size of a document. A larger one is skipped and becomes a row of index_errors."
    )

    max_file_mb: float = Field(
        1000, gt=0, description="Maximum size of a file of the input folder. A larger one is not read."
    )
    conversion_seconds: float = Field(
        300, gt=0, description="Maximum seconds for converting one PDF, Word, PowerPoint, HTML or Parquet file."
    )
    conversion_memory_mb: int = Field(
        1000, ge=50, description="Maximum megabytes of memory for converting one of these files; on Linux only."
    )
    outside_links: bool = Field(False, description="Whether links that lead out of the input folder are followed.")

    text_encoding: str = Field(
        "", description="Encoding of text files that are not UTF-8, such as windows-1252; unset: detected per file."
    )

    tokenizer: Literal["o200k_base", "cl100k_base"] = Field("o200k_base", description="Tokenizer that counts tokens.")
    chunking: Literal["anchored", "tokens", "sentences"] = Field(
        "anchored",
        description="anchored: at sentences chosen by content, so edits stay local; tokens: GraphRAG's fixed "
        "window; sentences: one sentence each.",
    )
    chunk_size: int | None = Field(
        None,
        ge=50,
        description="Maximum tokens per text unit; unset: 1200, or 2400 with chunking=anchored and a chat model, whose "
        "prompt is sent with each text unit. Anchored text units have a third of it in the mean.",
    )
    chunk_overlap: int = Field(100, ge=0, description="Tokens shared by neighboring text units; chunking=tokens only.")

    text_unit_context: Literal["headings", "none", "model"] = Field(
        "headings",
        description="Context that is searched and shown with a text unit. headings: document title › headings; "
        "none: nothing; model: these, and a passage by the chat model that places the text unit in its document.",
    )

    min_concept_mentions: int = Field(
        2, ge=1, description="A common-noun concept becomes an entity when this many text units name it."
    )
    max_cluster_size: int = Field(
        10, ge=2, description="Communities with more members are split further. A hub with its leaves stays whole."
    )
    seed: int = Field(0xDEADBEEF, description="Seed of clustering and layout.")

    chat_model: str = Field(
        "", description="Chat model as litellm names it (openai/gpt-…, ollama/…); unset: the embedded default."
    )
    embedding_model: str = Field(
        "",
        description="Embedding model: onnx:minilm (packaged, runs on this machine), onnx:/path of a "
        "sentence-transformers ONNX export, or a provider's as litellm names it; unset: hashed n-grams, without a "
        "model.",
    )
    chat_base_url: str = Field("", description="OpenAI-compatible server of the chat model; key: _CHAT_API_KEY.")
    embedding_base_url: str = Field(
        "", description="OpenAI-compatible server of the embedding model; key: _EMBEDDING_API_KEY."
    )
    structured_output: Literal["auto", "json_schema", "json_object", "text"] = Field(
        "auto", description="How JSON is requested: auto starts with a schema and falls back when it is rejected."
    )
    prompts_dir: str = Field("", description="Folder of prompt templates that replace the built-in ones.")
    entity_types: str = Field(
        "organization, person, geo, event", description="Entity types requested from the chat model."
    )
    max_gleanings: int = Field(1, ge=0, description="Rounds in which the chat model is asked for what it missed.")
    extract_claims: bool = Field(True, description="Whether the chat model also extracts claims.")
    language: str = Field("", description="Output language of the chat model; unset: the language of the documents.")
    concurrency: int = Field(25, ge=1, description="Maximum concurrent model calls.")
    requests_per_minute: int | None = Field(None, ge=1, description="Maximum model calls per minute.")
    tokens_per_minute: int | None = Field(None, ge=1, description="Maximum tokens per minute.")
    max_retries: int = Field(8, ge=0, description="Maximum retries of a call after a transient failure.")
    backoff_seconds: float = Field(
        1.0, ge=0, description="Maximum wait before the first retry, in seconds; doubles with each retry."
    )
    request_timeout: float = Field(
        180.0, gt=0, description="Timeout of a model call in seconds, for chat and embeddings."
    )
    budget_usd: float | None = Field(
        None, ge=0, description="Maximum US dollars that a run, and all runs of a day, may spend on models."
    )
    chat_input_usd_per_million: float | None = Field(None, ge=0, description="Price; unset: litellm's table.")
    chat_output_usd_per_million: float | None = Field(None, ge=0, description="Price; unset: litellm's table.")
    embedding_usd_per_million: float | None = Field(None, ge=0, description="Price; unset: litellm's table.")
    ledger_url: str = Field("", description="SQLAlchemy URL of the ledger; unset: ledger.sqlite in the index folder.")

    report_input_tokens: int = Field(8000, ge=200, description="Maximum tokens of the context of a community report.")
    report_words: int = Field(1500, ge=50, description="Maximum words of a community report by the chat model.")
    max_failed_units: float = Field(
        0.05, ge=0, le=1, description="Maximum share of failed text units; above it nothing is published."
    )
    keep_publications: int = Field(3, ge=1, description="Publications kept for comparison and rollback.")

    @field_validator("text_encoding")
    @classmethod
    def _is_text_encoding(cls, name: str) -> str:
        try:
            "a".encode(name or "utf-8")
        except LookupError:
            raise ValueError("Python has no text encoding of this name") from None
        return name

    @classmethod
    def load(cls, **overrides: object) -> "Settings":
        """Settings from the environment, with `overrides` on top.

        Raises:
            SettingsError: a value does not fit; the message names the variable, the value and the remedy.
        """
        if variable("GRAPHRAG_ENCODING"):
            raise SettingsError("GRAPHRAG_ENCODING is now called GRAPHRAG_TOKENIZER. Rename it.")
        for value in overrides.values():
            keep_secret(value if isinstance(value, str) and "://" in value else None)
        try:
            settings = cls(**overrides)  # type: ignore[arg-type]
        except ValidationError as error:
            lines = [
                f"GRAPHRAG_{'_'.join(str(part) for part in problem['loc']).upper()}="
                f"{problem['input']!r}: {problem['msg']}"
                for problem in error.errors()
            ]
            raise SettingsError("Bad setting. " + "; ".join(lines)) from None
        if settings.chunking == "tokens" and settings.chunk_overlap >= settings.max_unit_tokens:
            raise SettingsError(
                f"GRAPHRAG_CHUNK_OVERLAP={settings.chunk_overlap} must be smaller than "
                f"GRAPHRAG_CHUNK_SIZE={settings.max_unit_tokens}."
            )
        if settings.text_unit_context == "model" and not settings.chat_model:
            raise SettingsError(
                "GRAPHRAG_TEXT_UNIT_CONTEXT=model needs a chat model to write contexts: set GRAPHRAG_CHAT_MODEL, or "
                "GRAPHRAG_TEXT_UNIT_CONTEXT=headings, which needs none."
            )
        return settings

    @cached_property
    def input_folder(self) -> str:
        """Where the batches are: a local path, or the URL of something that is not local."""
        scheme, separator, path = self.input.partition("://")
        if separator and scheme in ("file", "local"):
            return url2pathname(path)
        return self.input or str(self.data / "input")

    @cached_property
    def input_as_given(self) -> str:
        """The input folder as a name that does not change when the project is moved."""
        if not self.input:
            return "the default input folder"
        folder = self.input_folder
        return without_credentials(folder) if "://" in folder else str(Path(folder).resolve())

    @cached_property
    def entity_type_list(self) -> tuple[str, ...]:
        """The entity types, one by one."""
        return tuple(kind.strip() for kind in self.entity_types.split(",") if kind.strip())

    @property
    def max_unit_tokens(self) -> int:
        """Maximum tokens per text unit: `chunk_size`, or its default for these settings."""
        return self.chunk_size or (2400 if self.chat_model and self.chunking == "anchored" else 1200)

    @property
    def embeds_locally(self) -> bool:
        """Whether the embedding model runs in this process: it costs nothing and needs no ledger."""
        return self.embedding_model.startswith(ONNX)

    @property
    def calls_models(self) -> bool:
        """Whether indexing calls models of a provider, which may cost money."""
        return bool(self.chat_model) or (bool(self.embedding_model) and not self.embeds_locally)

    @cached_property
    def index_folder(self) -> Path:
        """Where the databases are."""
        return self.data / "index"

    @property
    def ledger_file(self) -> Path:
        """The ledger of an index that has one of its own."""
        return self.index_folder / "ledger.sqlite"

    def as_rows(self) -> dict[str, str]:
        """Name and value of each setting that shapes the index; where things are stored is left out."""
        settings = self.model_dump(
            exclude={"data", "input", "ledger_url", "automation", "nightly_cron", "settle_seconds"}
        ) | {"chunk_size": self.max_unit_tokens}
        return {name: without_credentials(str(value)) for name, value in settings.items()}
