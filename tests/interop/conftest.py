"""Imports for tests: the small index, imported once for those that only read it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from graphrag_assets.interop.importer import Imported, import_index
from tests.conftest import Project
from tests.interop.small_index import write_small_index


@pytest.fixture
def import_small(project: Project) -> Callable[..., Imported]:
    """Import the small index into the project."""

    def imported(name: str | None = None, **more: str) -> Imported:
        return import_index(project.index, write_small_index(project.root / "small"), name, **more)

    return imported


class SmallIndex(Project):
    """The small index, imported, and what the import told."""

    imported: Imported


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    """The small index, imported into an index of its own. For reading."""
    root: Path = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setenv("GRAPHRAG_DATA", str(root))
        project = SmallIndex(root, instance)
        project.imported = import_index(project.index, write_small_index(root / "small"))
        yield project
