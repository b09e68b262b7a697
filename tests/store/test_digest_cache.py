"""Digests of batches are remembered by size and time of the files."""

import os
import time
from pathlib import Path

import pytest

from graphrag_assets.store.digest_cache import DigestCache
from graphrag_assets.store.input_files import InputFolder


class Counting(InputFolder):
    """An input folder that notes which batches are read."""

    def digest(self, batch, files=None):
        reads.append(batch)
        return super().digest(batch, files)


reads: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_read():
    reads.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Counting:
    for name in ("a", "b"):
        write(tmp_path / "in" / name / "text.txt", f"text of {name}", age=60)
    return Counting(str(tmp_path / "in"))


def write(file: Path, text: str, age: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    then = time.time() - age
    os.utime(file, (then, then))


def digests(folder: Counting, cache_file: Path) -> dict[str, str]:
    cache = DigestCache(cache_file, folder.location)
    found = {one.batch: cache.digest(folder, one.batch, one.files) for one in folder.list_batches()}
    cache.save()
    return found


def test_only_the_batch_that_changed_is_read_again(folder, tmp_path):
    first = digests(folder, tmp_path / "cache.json")
    write(tmp_path / "in/b/text.txt", "another text", age=30)
    second = digests(folder, tmp_path / "cache.json")
    assert reads == ["a", "b", "b"]
    assert second["a"] == first["a"]
    assert second["b"] != first["b"]


def test_recently_written_file_is_read_again(folder, tmp_path):
    write(tmp_path / "in/b/text.txt", "text of B", age=0)
    before = (tmp_path / "in/b/text.txt").stat()
    first = digests(folder, tmp_path / "cache.json")
    (tmp_path / "in/b/text.txt").write_text("TEXT of B")  # of the same length, in the same moment
    os.utime(tmp_path / "in/b/text.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests(folder, tmp_path / "cache.json")["b"] != first["b"]


def test_a_broken_cache_and_one_of_another_folder_are_none(folder, tmp_path):
    first = digests(folder, tmp_path / "cache.json")
    (tmp_path / "cache.json").write_text("{broken")
    assert digests(folder, tmp_path / "cache.json") == first
    assert reads == ["a", "b"] * 2
    digests(Counting(f"{folder.location}/"), tmp_path / "cache.json")
    assert reads == ["a", "b"] * 3
