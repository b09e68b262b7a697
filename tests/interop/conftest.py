"""Imports for tests: the small index, imported once for those that read it or work on a copy of it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.extras.interop.importer import Imported, import_index
from tests.conftest import IndexFolder, Project, build_once, default_settings
from tests.interop.small_index import write_small_index


@pytest.fixture
def import_small(project: Project) -> Callable[..., Imported]:
    """Import the small index into the project."""

    def imported(name: str | None = None, **more: str) -> Imported:
        return import_index(project.index, write_small_index(project.root / "small"), name, **more)

    return imported


class SmallIndex(IndexFolder):
    """The small index, imported."""

    @property
    def counts(self) -> pl.DataFrame:
        """The counts that the import returned."""
        return pl.read_parquet(self.root / "counts.parquet")


@pytest.fixture(scope="session")
def small(shared_folder: Path) -> Iterator[SmallIndex]:
    """The small index, imported into an index of its own. For reading."""

    def build(root: Path) -> None:
        default_settings(root, patch)
        index = IndexFolder(root).index
        import_index(index, write_small_index(root / "small")).counts.write_parquet(root / "counts.parquet")

    with pytest.MonkeyPatch.context() as patch:
        root = build_once(shared_folder / "small", build)
        patch.setenv("GRAPHRAG_DATA", str(root))
        yield SmallIndex(root)


@pytest.fixture
def imported(project: Project, small: SmallIndex) -> Project:
    """The project with the small index imported: a copy."""
    shutil.copytree(small.root, project.root, symlinks=True, dirs_exist_ok=True)
    return project
