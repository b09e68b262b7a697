"""The conversion process as its user sees it: started for the first file, restarted after one that broke a limit."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from graphrag_assets.reading.limits import OUT_OF_MEMORY, ConversionLimits
from graphrag_assets.reading.readers import reader_of
from graphrag_assets.reading.source_records import LoadOptions, Place, Problem, Record, shortened, too_long
from graphrag_assets.runtime.outgoing import without_secrets

_Result = TypeVar("_Result")
_DAMAGED = "Check whether the file is damaged, or save its text as .txt or .md."
_START_SECONDS = 120.0


class ConversionProcess:
    """Reads the files of a batch one after the other; a context manager that ends its processes.

    Each library has a process, so that none loads those of the others. A plain program with pipes, because
    multiprocessing would import the caller's main module or fork its threads. Temporary files go to a folder that is
    removed with the processes.
    """

    def __init__(self, limits: ConversionLimits) -> None:
        self._limits = limits
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "ConversionProcess":
        return self

    def __exit__(self, *_: object) -> None:
        for kind in list(self._workers):
            self._stop(kind)
        if self._temporary:
            self._temporary.cleanup()

    def __call__(self, data: bytes, file_format: str, column: str, options: LoadOptions) -> list[Record | Problem]:
        """Return the documents and problems of one file; what its library raises or a limit it breaks is a problem."""
        request: dict[str, object] = {"format": file_format, "column": column, "options": asdict(options)}
        reply = self._reply(reader_of(file_format), data, request)
        if isinstance(reply, Problem):
            return [reply]
        if "error" in reply:
            return [Problem(f"not readable as {file_format}: {shortened(reply['error'])}", _DAMAGED)]
        return [_item(item, self._limits.max_output_bytes) for item in reply["items"]]

    def _reply(self, kind: str, data: bytes, request: dict[str, object]) -> dict[str, Any] | Problem:
        worker = self._workers.get(kind) or self._start(kind)
        header = request | {"n_bytes": len(data)}
        reply, late = _within(self._limits.seconds, worker, lambda: _exchange(worker, data, header))
        if reply is None:
            self._stop(kind)
            return self._breach(worker.returncode, late, str(request["format"]))
        return reply

    def _start(self, kind: str) -> "subprocess.Popen[bytes]":
        """A worker that is ready for files; the time until then is not counted."""
        command = [sys.executable, "-m", "graphrag_assets.reading.worker", kind, json.dumps(asdict(self._limits))]
        self._temporary = self._temporary or tempfile.TemporaryDirectory(
            prefix="graphrag_assets-", ignore_cleanup_errors=True
        )
        # Each of polars' threads takes address space, which counts as memory.
        environment = without_secrets(os.environ) | {
            "POLARS_MAX_THREADS": "1",
            "RAYON_NUM_THREADS": "1",
            **dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), self._temporary.name),
        }
        worker = self._workers[kind] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        _within(_START_SECONDS, worker, lambda: worker.stdout and worker.stdout.readline())
        return worker

    def _stop(self, kind: str) -> None:
        worker = self._workers.pop(kind)
        worker.kill()
        worker.communicate()

    def _breach(self, exit_code: int, late: bool, file_format: str) -> Problem:
        seconds, megabytes = self._limits.seconds, self._limits.memory_mb
        if late or exit_code == -signal.SIGXCPU:
            remedy = f"{_DAMAGED} Split a very long document."
            return Problem(f"converting the {file_format} file took more than {seconds:g} s", remedy)
        # Without memory Rust, in which polars and kreuzberg are written, aborts the process.
        if exit_code in (OUT_OF_MEMORY, -signal.SIGABRT):
            remedy = f"{_DAMAGED} Split a very large document."
            return Problem(f"converting the {file_format} file took more than {megabytes:,} MB of memory", remedy)
        return Problem(f"converting the {file_format} file ended its process (exit code {exit_code})", _DAMAGED)


def _item(item: dict[str, Any], max_bytes: int) -> Record | Problem:
    if "error" in item:
        return Problem(**item)
    if "n_bytes" in item:
        return too_long(item["n_bytes"], max_bytes, item["row_number"])
    return Record(**item | {"places": tuple(Place(*place) for place in item["places"])})


def _exchange(worker: "subprocess.Popen[bytes]", data: bytes, header: dict[str, object]) -> dict[str, Any] | None:
    """The worker's reply about a file; None if it ended without one."""
    assert worker.stdin
    assert worker.stdout
    try:
        worker.stdin.write(json.dumps(header).encode() + b"\n" + data)
        worker.stdin.flush()
    except BrokenPipeError:
        return None
    line = worker.stdout.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _within(seconds: float, worker: "subprocess.Popen[bytes]", work: Callable[[], _Result]) -> tuple[_Result, bool]:
    """The result of `work`, which waits for the worker, and whether the worker was killed because it took longer."""
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
