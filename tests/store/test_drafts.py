"""Copies of files of the index."""

import errno
import os

import pytest

from graphrag_assets.store.drafts import copy_file


def unsupported(*_: object) -> int:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


@pytest.mark.parametrize("content", [b"", os.urandom(3 * 2**20 + 17)], ids=["empty", "large"])
@pytest.mark.parametrize("supported", [True, False])
def test_a_copy_has_the_content_and_nothing_of_the_file_before(tmp_path, monkeypatch, content, supported):
    if not supported:
        monkeypatch.setattr(os, "copy_file_range", unsupported)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    target.write_bytes(b"longer" * 2**20)
    copy_file(source, target)
    assert target.read_bytes() == content


def test_a_missing_file_cannot_be_copied(tmp_path):
    with pytest.raises(FileNotFoundError):
        copy_file(tmp_path / "missing", tmp_path / "target")
