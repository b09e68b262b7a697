"""The conversion process as its user sees it: started for the first file, again after one that broke a limit.

A file of a few kilobytes can expand to gigabytes or take hours, and some libraries crash the interpreter; a process can
be ended without harm to the batch.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeVar

from graphrag_assets.reading.source_records import (
    OUT_OF_MEMORY,
    ConversionLimits,
    LoadOptions,
    Place,
    Problem,
    Record,
    shortened,
)
from graphrag_assets.runtime.outgoing import without_secrets

_Result = TypeVar("_Result")
_DAMAGED = "Check whether the file is damaged, or save its text as .txt or .md."
_START_SECONDS = 120.0


class ConversionProcess:
    """Reads files one after the other in a process with limits; a context manager that ends it.

    A plain program with pipes, because multiprocessing would import the caller's main module or fork its threads.
    Temporary files go to a folder that is removed with the process.
    """

    def __init__(self, limits: ConversionLimits) -> None:
        self._limits = limits
        self._worker: subprocess.Popen[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "ConversionProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._stop()
        if self._temporary:
            self._temporary.cleanup()
            self._temporary = None

    def __call__(self, data: bytes, file_format: str, column: str, options: LoadOptions) -> list[Record | Problem]:
        """Return the documents and problems of one file; what its library raises or a limit it breaks is a problem."""
        reply = self._reply(data, {"format": file_format, "column": column, "options": asdict(options)})
        if isinstance(reply, Problem):
            return [reply]
        if "error" in reply:
            return [Problem(f"not readable as {file_format}: {shortened(reply['error'])}", _DAMAGED)]
        return [_item(item) for item in reply["items"]]

    def _reply(self, data: bytes, request: dict[str, object]) -> dict[str, Any] | Problem:
        worker = self._worker = self._worker or self._start()
        header = json.dumps(request | {"n_bytes": len(data)}).encode() + b"\n"
        ready, _ = _within(_START_SECONDS, worker, lambda: _send(worker, header + data))  # the start is not counted
        reply, late = _within(self._limits.seconds, worker, lambda: _receive(worker)) if ready else (None, False)
        if reply is None:
            self._stop()
            return self._breach(worker.returncode, late, str(request["format"]))
        return reply

    def _start(self) -> "subprocess.Popen[bytes]":
        self._temporary = tempfile.TemporaryDirectory(prefix="graphrag_assets-", ignore_cleanup_errors=True)
        program = [sys.executable, "-m", "graphrag_assets.reading.worker"]
        command = [*program, json.dumps(asdict(self._limits)), self._temporary.name]
        # Each thread of a library takes address space, which counts as memory.
        environment = without_secrets(os.environ) | {
            "OMP_NUM_THREADS": "1",
            "RAYON_NUM_THREADS": "1",
            **dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), self._temporary.name),
        }
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    def _stop(self) -> None:
        if self._worker:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None

    def _breach(self, exit_code: int, late: bool, file_format: str) -> Problem:
        seconds, megabytes = self._limits.seconds, self._limits.memory_mb
        if late or exit_code == -signal.SIGXCPU:
            remedy = f"{_DAMAGED} Split a very long document."
            return Problem(f"converting the {file_format} file took more than {seconds:g} s", remedy)
        # Without memory, libraries in Rust abort the process, and glibc exits with 127 where a thread needs some.
        if exit_code in (OUT_OF_MEMORY, -signal.SIGABRT, 127):
            remedy = f"{_DAMAGED} Split a very large document."
            return Problem(f"converting the {file_format} file took more than {megabytes:,} MB of memory", remedy)
        return Problem(f"converting the {file_format} file ended its process (exit code {exit_code})", _DAMAGED)


def _item(item: dict[str, Any]) -> Record | Problem:
    if "error" in item:
        return Problem(**item)
    return Record(**item | {"places": tuple(Place(*place) for place in item["places"])})


def _send(worker: "subprocess.Popen[bytes]", request: bytes) -> bool:
    """Send a request; return whether the worker has loaded what reads the file."""
    assert worker.stdin
    assert worker.stdout
    try:
        worker.stdin.write(request)
        worker.stdin.flush()
    except BrokenPipeError:
        return False
    return bool(worker.stdout.readline())


def _receive(worker: "subprocess.Popen[bytes]") -> dict[str, Any] | None:
    """Return the worker's reply about a file; None if it ended without one."""
    assert worker.stdout
    line = worker.stdout.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _within(seconds: float, worker: "subprocess.Popen[bytes]", work: Callable[[], _Result]) -> tuple[_Result, bool]:
    """Return the result of `work`, which waits for the worker, and whether the worker was killed for taking longer."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        worker.kill()

    timer = threading.Timer(seconds, kill)
    timer.daemon = True  # an interrupt between these lines leaves no thread that is waited for
    try:
        timer.start()
        return work(), late.is_set()
    finally:
        timer.cancel()


_idle: dict[ConversionLimits, ConversionProcess] = {}


@contextlib.contextmanager
def conversion_process(limits: ConversionLimits) -> Iterator[ConversionProcess]:
    """Return a conversion process that stays for the next caller: one serves all batches of a run."""
    process = _idle.pop(limits, None) or ConversionProcess(limits)
    try:
        yield process
    except BaseException:
        process.close()
        raise
    other = _idle.setdefault(limits, process)
    if other is not process:
        process.close()


@atexit.register
def _close_idle() -> None:
    for process in _idle.values():
        process.close()
