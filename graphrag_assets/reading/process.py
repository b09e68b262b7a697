"""The conversion process as its user sees it: started for the first file, again after one that broke a limit.

A file of a few kilobytes can expand to gigabytes or take hours, and some libraries crash the interpreter; a process can
be ended without harm to the batch.
"""

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import Any

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

_DAMAGED = "Check whether the file is damaged, or save its text as .txt or .md."


class ConversionProcess:
    """Reads files one after the other in a process with limits; a context manager that ends it.

    A plain program with pipes, because multiprocessing would import the caller's main module or fork its threads.
    Temporary files go to a folder that is removed with the process.
    """

    def __init__(self, limits: ConversionLimits) -> None:
        self._limits = limits
        self._worker: subprocess.Popen[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._one_file = threading.Lock()

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

    def __call__(self, data: bytes, file_format: str, options: LoadOptions) -> list[Record | Problem]:
        """Return the documents and problems of one file; what its library raises or a limit it breaks is a problem."""
        request = {"format": file_format, "options": asdict(options), "n_bytes": len(data)}
        with self._one_file:
            reply = self._reply(json.dumps(request).encode() + b"\n" + data)
            if reply is None:
                return [self._breach(file_format)]
        if "error" in reply:
            return [Problem(f"not readable as {file_format}: {shortened(reply['error'])}", _DAMAGED)]
        return [_item(item) for item in reply["items"]]

    def _reply(self, request: bytes) -> dict[str, Any] | None:
        """Return the worker's reply about a file; None if it ended without one."""
        worker = self._worker = self._worker or self._start()
        assert worker.stdin
        assert worker.stdout
        try:
            with suppress(BrokenPipeError):
                worker.stdin.write(request)
                worker.stdin.flush()
            line = worker.stdout.readline()
        except BaseException:  # an interrupt: the reply of this file must not be that of the next
            self._stop()
            raise
        return json.loads(line) if line.endswith(b"\n") else None

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

    def _stop(self) -> int:
        """End the worker; return its exit code."""
        worker, self._worker = self._worker, None
        if worker is None:
            return 0
        worker.kill()
        worker.communicate()
        return worker.returncode

    def _breach(self, file_format: str) -> Problem:
        exit_code = self._stop()
        if exit_code == -signal.SIGALRM:
            remedy = f"{_DAMAGED} Split a very long document."
            return Problem(f"converting the {file_format} file took more than {self._limits.seconds:g} s", remedy)
        # Without memory, libraries in Rust abort the process, and glibc exits with 127 where a thread needs some.
        if exit_code in (OUT_OF_MEMORY, -signal.SIGABRT, 127):
            limit, remedy = self._limits.memory_mb, f"{_DAMAGED} Split a very large document."
            return Problem(f"converting the {file_format} file took more than {limit:,} MB of memory", remedy)
        return Problem(f"converting the {file_format} file ended its process (exit code {exit_code})", _DAMAGED)


def _item(item: dict[str, Any]) -> Record | Problem:
    if "error" in item:
        return Problem(**item)
    return Record(**item | {"places": tuple(Place(*place) for place in item["places"])})


@functools.cache
def conversion_process(limits: ConversionLimits) -> ConversionProcess:
    """Return the conversion process of this program: one serves all batches of a run, and ends with it."""
    process = ConversionProcess(limits)
    atexit.register(process.close)
    return process
