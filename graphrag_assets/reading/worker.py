"""The program of the conversion process: reads files from standard input, writes what they hold to standard output.

It serves one reader. A request is a line of JSON (`format`, `n_bytes`, `column` and `options`) and the bytes of the
file. The reply is a line of JSON with `items`, the records and problems of the file, or with `error`. The process ends
with its parent: at the end of its input it exits at once, also in the middle of a conversion.
"""

import json
import math
import os
import queue
import resource
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, BinaryIO

import psutil

from graphrag_assets.reading.limits import OUT_OF_MEMORY, ConversionLimits
from graphrag_assets.reading.readers import Read, reader
from graphrag_assets.reading.source_records import LoadOptions, Problem, Record, clean

_Request = tuple[dict[str, Any], bytes]


def main(kind: str, limits: ConversionLimits) -> None:
    """Serve requests until standard input ends."""
    read = reader(kind)  # imports its libraries, before memory is limited
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries out of the replies
    _limit_memory(limits.memory_mb * 1_000_000)
    requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    replies.write(b"ready\n")
    replies.flush()
    while True:
        request, data = requests.get()
        _limit_processor_time(limits.seconds)
        try:
            reply = json.dumps(_reply(read, data, request, limits.max_output_bytes)).encode()
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        replies.write(reply + b"\n")
        replies.flush()


def _receive(stream: BinaryIO, requests: "queue.SimpleQueue[_Request]") -> None:
    """Passes on the requests of the parent, and ends the process when the parent has exited."""
    try:
        while line := stream.readline():
            request = json.loads(line)
            requests.put((request, stream.read(request["n_bytes"])))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


def _items(read: Read, data: bytes, request: dict[str, Any], max_bytes: int) -> list[dict[str, object]]:
    items = read(data, request["format"], request["column"], LoadOptions(**request["options"]))
    return [_as_dict(item, max_bytes) for item in items]


def _as_dict(item: Record | Problem, max_bytes: int) -> dict[str, object]:
    """Return the item for JSON; of a document above the limit, only its size."""
    if isinstance(item, Record):
        item = replace(item, text=clean(item.text))
        if (n_bytes := len(item.text.encode())) > max_bytes:
            return {"n_bytes": n_bytes, "row_number": item.row_number}
    return asdict(item)


def _reply(read: Read, data: bytes, request: dict[str, Any], max_bytes: int) -> dict[str, object]:
    try:
        return {"items": _items(read, data, request, max_bytes)}
    except Exception as error:  # whatever the library of the format raises
        if _lacks_memory(error):
            raise MemoryError from error
        return {"error": f"{type(error).__name__}: {error}"[:1000]}


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether the error is, or was raised while handling, one of missing memory: clean-up code often fails then."""
    return error is not None and (isinstance(error, MemoryError) or _lacks_memory(error.__context__))


def _limit_memory(n_bytes: int) -> None:
    """Let the process take `n_bytes` more than now, where the system enforces that: Linux does, macOS does not."""
    with suppress(ValueError, OSError):
        limit = psutil.Process().memory_info().vms + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_processor_time(seconds: float) -> None:
    """Backstop for a parent that was killed while C code holds the interpreter: the system ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(ValueError, OSError):
        limit = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main(sys.argv[1], ConversionLimits(**json.loads(sys.argv[2])))
