"""Reading a file of any format asks nothing of a network, and a damaged one neither crashes nor leaves anything."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from graphrag_assets.reading.kinds import FORMATS, read_records
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Problem, Record
from tests.hostile import no_network
from tests.hostile.mutations import mutated
from tests.hostile.small_files import BINARY, SMALL, TEXT

OPTIONS = LoadOptions()
N_DAMAGED = 300


def read(convert: ConversionProcess, file_format: str, data: bytes) -> list[Record | Problem]:
    return list(read_records(f"a.{file_format}", data, OPTIONS, convert))


def read_all() -> None:
    """Read a file of each format; print the formats of which the text is there."""
    with ConversionProcess(ConversionLimits()) as convert:
        for file_format, data in (SMALL | BINARY).items():
            items = read(convert, file_format, data)
            died = [item.error for item in items if isinstance(item, Problem) and "its process" in item.error]
            print(file_format, died or any(isinstance(item, Record) and item.text for item in items))


@pytest.mark.extended
@pytest.mark.skipif(not no_network.is_supported(), reason="needs seccomp of Linux")
def test_no_format_asks_for_a_network() -> None:
    assert FORMATS - SMALL.keys() - BINARY.keys() <= {"doc", "xls", "msg"}, "add a small file to small_files.SMALL"
    program = (
        "from tests.hostile.test_reading_alone import *; no_network.forbid_network(); read_all();"
        "import socket; socket.create_connection(('127.0.0.1', 9))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    read_formats = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert read_formats == dict.fromkeys(SMALL | BINARY, "True") | {"ppt": "False"}
    assert done.returncode == -31  # SIGSYS: a request would have ended any of these processes


@pytest.mark.extended
def test_damaged_files_neither_crash_nor_leave_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "TMPDIR"))
    chance, seeds = random.Random(1866), sorted((SMALL | BINARY).items())
    with ConversionProcess(ConversionLimits(seconds=20)) as convert:
        for number in range(N_DAMAGED):
            file_format, data = seeds[number % len(seeds)]
            for item in read(convert, file_format, mutated(data, chance)):
                problem = getattr(item, "error", "")  # where a number of rows was damaged, the limit of memory ends it
                assert not problem.endswith((" s", ")") if "converting" in problem else ()), (number, problem)
        assert any(TEXT in getattr(item, "text", "") for item in read(convert, "docx", SMALL["docx"]))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["HOME", "TMPDIR", "XDG_CACHE_HOME"]
