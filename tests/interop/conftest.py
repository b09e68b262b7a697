"""Imports for tests: the small index, imported once for those that read it or work on a copy of it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_assets.extras.interop.importer import Imported, import_index
from tests.conftest import IndexFolder, Project, build_once, default_settings
from tests.interop.small_index import write_small_index


@pytest.fixture
def import_small(project: Project) -> Callable[..., Imported]:
    """Import the small index into the project."""
    return lambda name=None: import_index(project.index, write_small_index(project.root / "small"), name)


@pytest.fixture(scope="session")
def small(shared_folder: Path) -> Iterator[IndexFolder]:
    """The small index, imported into an index of its own. For reading."""

    def build(root: Path) -> None:
        default_settings(root, patch)
        import_index(IndexFolder(root).index, write_small_index(root / "small"))
        IndexFolder(root).refresh()

    with pytest.MonkeyPatch.context() as patch:
        root = build_once(shared_folder / "small", build)
        patch.setenv("GRAPHRAG_DATA", str(root))
        yield IndexFolder(root)


@pytest.fixture
def imported(project: Project, small: IndexFolder) -> Project:
    """The project with the small index imported: a copy."""
    shutil.copytree(small.root, project.root, symlinks=True, dirs_exist_ok=True)
    return project
