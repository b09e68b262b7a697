"""Digests of batches are cached by size and time of their files."""

import os
import time
from pathlib import Path

import pytest

from graphrag_assets.store.digest_cache import DigestCache, age
from graphrag_assets.store.input_files import InputFolder


@pytest.fixture
def folder(tmp_path: Path) -> InputFolder:
    for name in ("a", "b"):
        write(tmp_path / "in" / name / "text.txt", f"text of {name}", age=60)
    return InputFolder(str(tmp_path / "in"))


def write(file: Path, text: str, age: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    then = time.time() - age
    os.utime(file, (then, then))


def digests(folder: InputFolder, location: str = "here") -> tuple[dict[str, str], list[str]]:
    """The digests by batch, and the batches whose files were read."""
    cache, batches = DigestCache(Path(folder.location).with_name("cache.json"), location), list(folder.list_batches())
    found = {one.batch: cache.digest(folder, one.batch, one.files) for one in batches}
    cache.save()
    return found, [one.batch for one in batches if one.files[0]._hashes]


def test_only_the_batch_that_changed_is_read_again(folder, tmp_path):
    first, read = digests(folder)
    assert read == ["a", "b"]
    write(tmp_path / "in/b/text.txt", "another text", age=30)
    second, read = digests(folder)
    assert read == ["b"]
    assert second["a"] == first["a"]
    assert second["b"] != first["b"]


def test_recently_written_file_is_read_again(folder, tmp_path):
    write(tmp_path / "in/b/text.txt", "text of B", age=0)
    before = (tmp_path / "in/b/text.txt").stat()
    first, _ = digests(folder)
    assert digests(folder)[1] == ["b"]
    (tmp_path / "in/b/text.txt").write_text("TEXT of B")  # of the same length, in the same moment
    os.utime(tmp_path / "in/b/text.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests(folder)[0]["b"] != first["b"]


@pytest.mark.parametrize("seconds", [[0, -1e9], [-30], [100, 1]])
def test_a_batch_is_as_young_as_its_newest_file_whose_time_can_be(tmp_path, seconds):
    for number, age_of_file in enumerate(seconds):
        write(tmp_path / "in" / "a" / f"{number}.txt", "text", age=age_of_file)
    (batch,) = InputFolder(str(tmp_path / "in")).list_batches()
    assert age(batch.files) < 5


def test_a_file_of_a_far_future_is_not_young(tmp_path):
    write(tmp_path / "in" / "a" / "text.txt", "text", age=-1e9)
    (batch,) = InputFolder(str(tmp_path / "in")).list_batches()
    assert age(batch.files) > 1e9


def test_a_broken_cache_and_one_of_another_folder_are_none(folder, tmp_path):
    first = digests(folder)
    assert digests(folder, "elsewhere") == first
    (tmp_path / "cache.json").write_text("{broken")
    assert digests(folder, "elsewhere") == first
