"""What judges a publication before readers see it, registered by name: nothing is imported before it is needed."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_assets.settings import Settings

CheckCandidate = Callable[["Settings", Path, int], None]
"""Raises CheckError for a file that must not become the publication of that number."""

_PLACES: list[str] = []


def register_candidate_check(place: str) -> None:
    """Have the function at `place` (module.function) judge each candidate."""
    if place not in _PLACES:
        _PLACES.append(place)


def candidate_checks() -> list[CheckCandidate]:
    """The registered functions."""
    found = (place.rpartition(".") for place in _PLACES)
    return [getattr(importlib.import_module(module), function) for module, _, function in found]
