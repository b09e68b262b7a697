"""Options that several commands have, and their values as the query module takes them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from graphrag_assets.errors import InputError, QueryError

INDEX = click.option("--index", "path", type=click.Path(path_type=Path), help="Index folder or .duckdb file.")
HISTORY = click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='JSON file with earlier turns: [{"role": "user", "content": "…"}, …].',
)
_FILTERS = (
    click.option("--batch", "batches", multiple=True, help="Search this batch only; may be given several times."),
    click.option("--document", "documents", multiple=True, help="Search this document (title, source or id) only."),
    click.option(
        "--filter",
        "metadata",
        metavar="KEY=VALUE",
        multiple=True,
        help="Search documents with this value of their metadata only; several values of a key are alternatives.",
    ),
    click.option("--as-of", metavar="DATE", help="Search documents of this date or an earlier one only."),
    click.option("--since", metavar="DATE", help="Search documents of this date or a later one only."),
    click.option(
        "--entity-type", "entity_types", multiple=True, help="Only entities of this type; may be given several times."
    ),
    click.option(
        "--relationship-type",
        "relationship_types",
        multiple=True,
        help="Only relationships of this type; may be given several times.",
    ),
)


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Return the options that limit a search; the command gets them as `search_options` takes them."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def search_options(history: Path | None = None, metadata: Sequence[str] = (), **others: Any) -> dict[str, Any]:
    """Return the options of a search that were given on the command line.

    Raises:
        InputError: the history is no JSON list.
        QueryError: metadata without a key.
    """
    options = {**others, "metadata": _metadata(metadata), "history": _turns(history) if history else None}
    return {name: value for name, value in options.items() if value not in (None, (), {}, [])}


def _metadata(pairs: Sequence[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise QueryError(f"--filter {pair!r} must be KEY=VALUE, such as topic=standards.")
        values.setdefault(key, []).append(value)
    return values


def _turns(file: Path) -> list[Any]:
    try:
        turns = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"The history {file} cannot be read as JSON: {error}.") from None
    if not isinstance(turns, list):
        raise InputError(f'The history {file} must be a list of turns, such as [{{"role": "user", "content": "…"}}].')
    return turns
