"""The program of the conversion process: reads files from standard input, writes what they hold to standard output.

A request is a line of JSON (`format`, `n_bytes` and `options`) and the bytes of the file. The reply is a line
of JSON with `items`, the records and problems of the file, or with `error`. An alarm of the system ends a process that
takes too long, whatever it is doing. It also ends with its parent: at the end of its input it removes its temporary
folder and exits at once, also in the middle of a conversion.
"""

import json
import os
import queue
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any

import psutil

from graphrag_assets.reading.formats import DECODED, FORMATS
from graphrag_assets.reading.source_records import (
    OUT_OF_MEMORY,
    ConversionLimits,
    LoadOptions,
    Problem,
    Record,
    clean,
    too_long,
)

_Request = tuple[dict[str, Any], bytes]


def main(limits: ConversionLimits, folder: str) -> None:
    """Serve requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries out of the replies
    _limit_memory(psutil.Process().memory_info().vms + limits.memory_mb * 1_000_000)
    requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, folder), daemon=True).start()
    while True:
        request, data = requests.get()
        module, _, name = FORMATS[request["format"]].reader.partition(".")
        reader = getattr(_load(f"graphrag_assets.reading.{module}"), name)
        signal.setitimer(signal.ITIMER_REAL, limits.seconds)
        try:
            reply = json.dumps(_reply(reader, module, data, request)).encode()
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(reply + b"\n")
        replies.flush()


def _load(module: str) -> Any:
    """Return a module; the memory that it takes with its libraries is added to the limit."""
    if module not in sys.modules:
        limit, before = resource.getrlimit(resource.RLIMIT_AS)[0], psutil.Process().memory_info().vms
        _limit_memory(resource.RLIM_INFINITY)
        import_module(module)
        _limit_memory(limit + psutil.Process().memory_info().vms - before)
    return sys.modules[module]


def _limit_memory(limit: int) -> None:
    """Set the limit of memory where the system enforces it: Linux does, macOS does not."""
    with suppress(ValueError, OSError, OverflowError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _receive(requests: "queue.SimpleQueue[_Request]", folder: str) -> None:
    """Pass on the requests of the parent; when it has exited, remove the folder of temporary files and end."""
    stream = sys.stdin.buffer
    try:
        while line := stream.readline():
            request = json.loads(line)
            requests.put((request, stream.read(request["n_bytes"])))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _reply(
    reader: Callable[..., Iterable[Record | Problem]], module: str, data: bytes, request: dict[str, Any]
) -> dict[str, object]:
    options = LoadOptions(**request["options"])
    more = (options,) if module.endswith("tables") else ()
    try:
        source = data.decode() if request["format"] in DECODED else data
        return {"items": [_as_dict(item, options.max_document_bytes) for item in reader(source, *more)]}
    except BaseException as error:  # whatever the library of the format raises; a panic of Rust is no Exception
        if _lacks_memory(error):
            raise MemoryError from error
        return {"error": f"{type(error).__name__}: {error}"[:1000]}


def _as_dict(item: Record | Problem, max_bytes: int) -> dict[str, object]:
    """Return the item for JSON; for a document above the limit its problem."""
    if isinstance(item, Record):
        item = replace(item, text=clean(item.text))
        if (n_bytes := len(item.text.encode())) > max_bytes:
            item = too_long(n_bytes, max_bytes, item.row_number)
    return asdict(item)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether the error is, or was raised while handling, one of missing memory: clean-up code often fails then."""
    return error is not None and (isinstance(error, MemoryError) or _lacks_memory(error.__context__))


if __name__ == "__main__":
    main(ConversionLimits(**json.loads(sys.argv[1])), sys.argv[2])
