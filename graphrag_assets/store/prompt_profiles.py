"""The versions of the prompt profile: rows of the table prompt_profile."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from graphrag_assets.contracts.prompt_profile import BUILT_IN, PromptProfile
from graphrag_assets.errors import SettingsError
from graphrag_assets.store.batches import utc_now
from graphrag_assets.store.index_database import IndexDatabase, insert_row
from graphrag_assets.store.schema import PROMPT_PROFILE

Query = Callable[[str, Mapping[str, Any]], pl.DataFrame]
"""Runs a query with parameters."""


def profile_in_force(query: Query, table: str = PROMPT_PROFILE.name) -> PromptProfile | None:
    """Return the adopted profile; None: the built-in prompts."""
    rows = query(f"FROM {table} WHERE adopted", {})
    return profile_of(rows.row(0, named=True)) if rows.height else None


def profile_of(row: Mapping[str, Any]) -> PromptProfile:
    """Return the profile in a row of the table."""
    return TypeAdapter(PromptProfile).validate_python(dict(row))


def record_profile(working: IndexDatabase, profile: PromptProfile, **record: Any) -> int:
    """Add a version, unless one has the same content, and return its number.

    Args:
        record: the columns of the table that are no part of the profile: model, sample_ids, calls, cost_usd.
    """
    with working.transaction() as connection:
        ((same, last),) = connection.execute(
            "SELECT max(version) FILTER (WHERE id = $id), coalesce(max(version), 0) FROM prompt_profile",
            {"id": profile.id},
        ).fetchall()
        if same is not None:
            return int(same)
        values = {"version": last + 1, "adopted": False, "made_at": utc_now(), **asdict(profile), **record}
        for example in values["examples"]:
            for entity in example["entities"]:
                del entity["n_sentences"]
        insert_row(connection, PROMPT_PROFILE, values)
        return int(last) + 1


def adopt(working: IndexDatabase, version: int) -> None:
    """Put a version in force, 0 being the built-in prompts."""
    with working.transaction() as connection:
        rows = connection.execute(
            "UPDATE prompt_profile SET adopted = (version = $version) RETURNING adopted", {"version": version}
        ).fetchall()
        if version != BUILT_IN and (True,) not in rows:
            raise SettingsError(f"There is no prompt profile {version}. `graphrag-assets index tune --list` shows all.")
