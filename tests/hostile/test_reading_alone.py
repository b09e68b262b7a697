"""Reading a file of any format asks nothing of a network, and a damaged one neither crashes nor leaves anything."""

import ctypes
import platform
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from graphrag_assets.reading.formats import FORMATS
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.read_records import read_records
from graphrag_assets.reading.source_records import ConversionLimits, LoadOptions, Problem, Record
from tests.hostile.small_files import BINARY, SMALL, TEXT

N_DAMAGED = 300
PIECES = (
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    "\u202e\u200b\ufeff\u0301".encode() * 50,
    b"\xed\xa0\x80",  # a lone surrogate
    b"[" * 50_000,
    b'{"text": ' * 5_000,
    b"<div>" * 20_000,
    b"a" * 300_000,
    b"../../../etc/passwd\n=cmd|' /C calc'!A0\n[bold]",
    "𝕮𝖆𝖇𝖑𝖊 ﷽ 🏴‍☠️".encode() * 200,
)
_REQUESTS = {"x86_64": (42, 44, 46, 307), "aarch64": (203, 206, 211, 269)}
"""The numbers of the system calls `connect`, `sendto`, `sendmsg` and `sendmmsg`, by machine."""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38


def mutated(data: bytes, chance: random.Random) -> bytes:
    """`data` after one to three changes: cut, flipped, doubled, or with something strange in it."""
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data = data[:place]
            case 1:
                flipped = bytearray(data)
                for _ in range(min(len(data), 20)):
                    flipped[chance.randrange(len(data))] = chance.randrange(256)
                data = bytes(flipped)
            case 2:
                data = data[:place] + data[:place][-5_000:] + data[place:]
            case _:
                data = data[:place] + chance.choice(PIECES) + data[place:]
    return data


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_supported() -> bool:
    """Whether the filter is for this system."""
    return sys.platform == "linux" and platform.machine() in _REQUESTS


def forbid_network() -> None:
    """Install the filter; there is no way back."""
    calls = _REQUESTS[platform.machine()]
    instructions = (
        (_LOAD, 0, 0, 0),  # the number of the call
        *((_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL_PROCESS),
    )
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(instructions), code)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def read(convert: ConversionProcess, file_format: str, data: bytes) -> list[Record | Problem]:
    return list(read_records(f"a.{file_format}", data, LoadOptions(), convert))


def read_all() -> None:
    """Read a file of each format; print the formats of which the text is there."""
    with ConversionProcess(ConversionLimits()) as convert:
        for file_format, data in (SMALL | BINARY).items():
            items = read(convert, file_format, data)
            died = [item.error for item in items if isinstance(item, Problem) and "its process" in item.error]
            print(file_format, died or any(isinstance(item, Record) and item.text for item in items))


@pytest.mark.extended
@pytest.mark.skipif(not is_supported(), reason="needs seccomp of Linux")
def test_no_format_asks_for_a_network() -> None:
    assert FORMATS.keys() - SMALL.keys() - BINARY.keys() <= {"xls", "msg"}, "a file of it is due in SMALL"
    program = (
        "from tests.hostile.test_reading_alone import *; forbid_network(); read_all();"
        "import socket; socket.create_connection(('127.0.0.1', 9))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    read_formats = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert read_formats == dict.fromkeys(SMALL | BINARY, "True")
    assert done.returncode == -31  # SIGSYS: a request would have ended any of these processes


@pytest.mark.extended
def test_damaged_files_neither_crash_nor_leave_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chance, seeds = random.Random(1866), sorted((SMALL | BINARY).items())
    with ConversionProcess(ConversionLimits(seconds=20)) as convert:
        for number in range(N_DAMAGED):
            file_format, data = seeds[number % len(seeds)]
            for item in read(convert, file_format, mutated(data, chance)):
                problem = getattr(item, "error", "")  # where a number of rows was damaged, the limit of memory ends it
                assert not problem.endswith((" s", ")") if "converting" in problem else ()), (number, problem)
        assert any(TEXT in getattr(item, "text", "") for item in read(convert, "docx", SMALL["docx"]))
    assert not list(tmp_path.iterdir())
