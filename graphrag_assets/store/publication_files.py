"""The files of publications: numbered files, and the pointer and the link to the current one."""

import re
from pathlib import Path

from graphrag_assets.errors import AccessError
from graphrag_assets.store.drafts import refuse_folder, replacing

POINTER = "CURRENT"
STABLE_NAME = "graphrag.duckdb"
FOLDER = "publications"
_NUMBERED = re.compile(r"graphrag-(\d+)\.duckdb")


def kept_publications(index_folder: Path) -> list[int]:
    """The numbers of the kept publications, in order. Other files in their folder do not count."""
    found = (_NUMBERED.fullmatch(path.name) for path in (index_folder / FOLDER).glob("*") if path.is_file())
    return sorted(int(match[1]) for match in found if match)


def publication_file(index_folder: Path, number: int) -> Path:
    """The file of publication `number`."""
    return index_folder / FOLDER / f"graphrag-{number}.duckdb"


def current_number(index_folder: Path) -> int | None:
    """The number of the publication that readers see; None before the first."""
    pointer = index_folder / POINTER
    refuse_folder(pointer)
    try:
        return int(Path(pointer.read_text().strip()).stem.removeprefix("graphrag-"))
    except PermissionError:
        raise AccessError(pointer) from None
    except (OSError, ValueError):
        return None


def points_to(index_folder: Path, number: int) -> bool:
    """Whether both the pointer and the stable name lead to publication `number`."""
    link, target = index_folder / STABLE_NAME, publication_file(index_folder, number)
    return current_number(index_folder) == number and link.is_file() and link.resolve() == target.resolve()


def point_to(index_folder: Path, number: int) -> None:
    """Make publication `number` the current one: first the pointer file, then the stable name."""
    target = publication_file(Path(), number)
    with replacing(index_folder / POINTER) as pointer:
        pointer.write_text(f"{target.as_posix()}\n", encoding="utf-8")
    with replacing(index_folder / STABLE_NAME) as link:
        link.symlink_to(target)
