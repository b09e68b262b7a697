"""Options of one run in the launchpad: typed, empty by default, checked before anything is done.

A setting given to a run is stored with its output (table index_options). Later runs, such as the sensor's, use the same
setting, so they do not compute and pay for the batch again with the environment's settings.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any, Literal

import dagster as dg
from pydantic import Field, field_validator, model_validator

from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_names import BATCH_STATE, IndexNames
from graphrag_assets.assets.scan import Which
from graphrag_assets.errors import SettingsError
from graphrag_assets.settings import Settings


def _setting(owner: str, description: str, more: str = "") -> Any:
    """A setting that stays with its owner's rows; `more` follows the sentence that says so."""
    stays = f"Empty: as it is. A value stays with {owner} until another run gives one."
    return Field(default=None, description=" ".join(filter(None, (description, stays, more))))


_of_batches, _of_index = partial(_setting, "these batches"), partial(_setting, "the index")


Chunking = Enum("Chunking", {"ANCHORED": "anchored", "TOKENS": "tokens", "SENTENCES": "sentences"})
TextUnitContext = Enum("TextUnitContext", {"HEADINGS": "headings", "NONE": "none", "MODEL": "model"})


class RunOptions(dg.Config):
    """Settings for one run: the fields with the names of settings."""

    reset_settings: bool = Field(
        default=False, description="true: drop the settings given to earlier runs and use the environment's."
    )

    @property
    def _settings(self) -> list[str]:
        return [name for name in type(self).model_fields if name in Settings.model_fields]

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were given, by name."""
        values = {name: getattr(self, name) for name in self._settings}
        plain = {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}
        return {name: value for name, value in plain.items() if value is not None}

    def apply_to(self, index: Index, batch: str | None) -> Index:
        """The index with the settings in force for this run, see `Index.with_run_options`."""
        return index.with_run_options(batch, self.given, self._settings if self.reset_settings else ())

    @model_validator(mode="after")
    def _is_possible(self) -> "RunOptions":
        _refuse_impossible(self.given)
        return self


class RerunOptions(dg.Config):
    """Options of a step that can rerun.

    Each step declares what it can do again as a Literal: Dagster makes an enum of it, so that the launchpad refuses
    other names before there is a run, and its message has the allowed ones.
    """

    rerun: str
    bypass_cache: bool = Field(
        default=False,
        description="true, with rerun: requests the chat model's answers again, AND PAYS AGAIN, instead of reading "
        "them from the ledger.",
    )

    @model_validator(mode="after")
    def _reruns_what_it_requests(self) -> "RerunOptions":
        if self.bypass_cache and self.rerun in ("NOTHING", "FAILED_UNITS"):
            raise _refusal(
                f"bypass_cache: true has no effect with rerun: {self.rerun}: new text units are requested anyway. "
                "Set another rerun, or leave bypass_cache out."
            )
        return self


class BatchOptions(RunOptions, RerunOptions):
    """How this run indexes batches."""

    entity_types: str | None = _of_batches("Entity types requested from the chat model, separated by commas.")
    max_gleanings: int | None = _of_batches("Rounds in which the chat model is asked for what it missed, from 0.")
    chunking: Chunking | None = _of_batches("ANCHORED, TOKENS or SENTENCES.")
    chunk_size: int | None = _of_batches("Maximum tokens per text unit, from 50.")
    text_unit_context: TextUnitContext | None = _of_batches(
        "HEADINGS, NONE or MODEL: context searched with a text unit. MODEL costs a call each."
    )
    rerun: Literal["NOTHING", "FAILED_UNITS", "EXTRACTION", "EVERYTHING"] = Field(
        default="FAILED_UNITS",
        description="NOTHING: new and edited text units only. FAILED_UNITS: those that failed too. EXTRACTION or "
        "EVERYTHING: all text units; costs nothing where the ledger has the answers.",
    )

    @field_validator("entity_types")
    @classmethod
    def _names_one(cls, value: str | None) -> str | None:
        if value is not None and not value.replace(",", "").strip():
            raise _refusal(
                f"entity_types: {value!r} names no entity type, so nothing would be found. Name some, separated by "
                "commas, or leave entity_types out."
            )
        return value

    @property
    def asks_for_something(self) -> bool:
        """Whether unchanged batches are concerned too, by settings or by a rerun."""
        return bool(self.given) or self.reset_settings or self.rerun in ("EXTRACTION", "EVERYTHING")


class DueBatches(BatchOptions):
    """Which batches are indexed before the graph is refreshed, and how."""

    which: Which | None = Field(
        default=None,
        description="CHANGED: batches that differ from the input folder or have failed text units. FAILED: the latter "
        "alone. ALL. NOTHING: refresh and publish what is indexed. Empty: CHANGED in the job update_index, otherwise "
        "NOTHING. Settings given here stay with the batches that are indexed; others keep theirs.",
    )
    batches: list[str] = Field(default=[], description="Only these batches, whether or not they have changed.")
    read_every_file: bool = Field(
        default=False,
        description="true: compare the content of every file, also of those with the same size and time as before.",
    )


class GraphOptions(RerunOptions):
    """How this run merges the graph."""

    rerun: Literal["NOTHING", "EVERYTHING"] = Field(
        default="NOTHING",
        description="NOTHING: descriptions whose mentions changed. EVERYTHING: for bypass_cache, all.",
    )


class CommunityOptions(RunOptions):
    """How this run detects communities."""

    max_cluster_size: int | None = _of_index(
        "Communities with more members are split, from 2.", "Changed communities get new reports."
    )
    from_scratch: bool = Field(
        default=False,
        description="true: cluster from scratch, not from the previous communities; about half of the reports change.",
    )


class ReportOptions(RerunOptions):
    """How this run writes community reports."""

    rerun: Literal["NOTHING", "REPORTS", "EVERYTHING"] = Field(
        default="NOTHING",
        description="NOTHING: reports whose community changed. REPORTS or EVERYTHING: all; costs nothing where the "
        "ledger has the answers.",
    )


OPTIONS: dict[str, type[dg.Config]] = {
    BATCH_STATE: DueBatches,
    "knowledge_graph": GraphOptions,
    "detect_communities": CommunityOptions,
    "write_community_reports": ReportOptions,
}
"""By stage; the others have none."""
_STEPS = ("index_batch", BATCH_STATE, "detect_communities")
"""Those whose config has settings."""


def refuse_impossible(names: IndexNames, run: dg.DagsterRun, models: str) -> None:
    """Refuse a run in whose config a number is out of range: in that of any of its steps, or of the resource `models`.

    The launchpad checks types and names, not ranges. Each step calls this first, so that none has done anything.

    Raises:
        dagster.Failure: naming the setting, its value and its limit.
    """
    given: Mapping[str, Any] = run.run_config
    ops, resources = given.get("ops", {}), given.get("resources", {})
    for entry in (*(ops.get(names.name(step)) for step in _STEPS), resources.get(names.name(models))):
        config = (entry or {}).get("config") or {}
        numbers = {name: value for name, value in config.items() if isinstance(value, int | float)}
        _refuse_impossible({name: value for name, value in numbers.items() if name in Settings.model_fields})


def _refuse_impossible(given: dict[str, Any]) -> None:
    if not given:
        return
    try:
        Settings.load(**given)
    except SettingsError as error:
        raise _refusal(f"{str(error).rstrip('.')}. Given in the run's config as {', '.join(given)}.") from None


def cache_not_before(instance: dg.DagsterInstance, run: dg.DagsterRun, options: RerunOptions) -> str | None:
    """With `bypass_cache`, the time before which answers in the ledger are ignored (ISO, UTC).

    It is the start of the run's first attempt, so that a retry does not pay again for answers it already has.
    """
    if not options.bypass_cache:
        return None
    record = instance.get_run_record_by_id(run.root_run_id or run.run_id)
    began = record.create_timestamp.timestamp() if record else datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(began, UTC).isoformat(timespec="microseconds")


def _refusal(reason: str) -> dg.Failure:
    """Fails the step with the reason alone: pydantic would add its own words to a ValueError."""
    return dg.Failure(f"{reason} Nothing was done.", allow_retries=False)
