"""The program of the conversion process: reads files from standard input, writes what they hold to standard output.

A request is a line of JSON (`format`, `n_bytes`, `column` and `options`) and the bytes of the file. The replies are the
line "ready", when the reader of the format is loaded, and a line of JSON with `items`, the records and problems of the
file, or with `error`. The process ends with its parent: at the end of its input it removes its temporary folder and
exits at once, also in the middle of a conversion.
"""

import json
import math
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

from graphrag_assets.reading.source_records import (
    OUT_OF_MEMORY,
    ConversionLimits,
    LoadOptions,
    Problem,
    Record,
    clean,
    too_long,
)

_READERS = {
    "pdf": "pdf.read_pdf",
    "parquet": "tables.read_parquet",
    "xlsx xls ods": "tables.read_sheets",
    "bib": "tables.read_bibliography",
    "html": "web.read_page",
    "eml": "mail.read_mail",
    "mbox": "mail.read_mailbox",
    "mht": "mail.read_saved_page",
    "ics vcf": "cards.read_cards",
    "xml": "xml_files.read_xml",
    "rst": "rst.read_rst",
    "tex": "markup.read_tex",
    "org": "markup.read_org",
    "ipynb": "markup.read_notebook",
    "rtf": "legacy.read_rtf",
    "doc": "legacy.read_doc",
    "ppt": "legacy.read_ppt",
    "msg": "legacy.read_msg",
    "docx": "office.read_docx",
    "pptx": "office.read_slides",
    "odt odp": "office.read_opendocument",
    "epub": "office.read_book",
}
"""The function that reads each format in the conversion process; its module loads the library."""
_BY_FORMAT = {name: reader for names, reader in _READERS.items() for name in names.split()}
_Request = tuple[dict[str, Any], bytes]


class _Memory:
    """The limit of memory, where the system enforces it: Linux does, macOS does not. Libraries do not count."""

    def __init__(self, n_bytes: int) -> None:
        self._limit = psutil.Process().memory_info().vms + n_bytes
        self._set(self._limit)

    def load(self, module: str, package: str = "graphrag_assets.reading.") -> Any:
        """Import a module."""
        name = package + module
        if name in sys.modules:
            return sys.modules[name]
        self._set(resource.RLIM_INFINITY)
        before = psutil.Process().memory_info().vms
        loaded = import_module(name)
        self._limit += psutil.Process().memory_info().vms - before
        self._set(self._limit)
        return loaded

    @staticmethod
    def _set(limit: int) -> None:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main(limits: ConversionLimits, folder: str) -> None:
    """Serve requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries out of the replies
    memory = _Memory(limits.memory_mb * 1_000_000)
    requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, folder), daemon=True).start()
    while True:
        request, data = requests.get()
        module, _, name = _BY_FORMAT[request["format"]].partition(".")
        if request["format"] == "parquet":
            memory.load("duckdb", "")
        reader = getattr(memory.load(module), name)
        replies.write(b"ready\n")
        replies.flush()
        _limit_processor_time(limits.seconds)
        try:
            reply = json.dumps(_reply(reader, module, data, request)).encode()
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        replies.write(reply + b"\n")
        replies.flush()


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
    more = (request["column"], options) if module == "tables" else ()
    try:
        return {"items": [_as_dict(item, options.max_document_bytes) for item in reader(data, *more)]}
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


def _limit_processor_time(seconds: float) -> None:
    """Backstop for a parent that was killed while C code holds the interpreter: the system ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(ValueError, OSError):
        limit = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main(ConversionLimits(**json.loads(sys.argv[1])), sys.argv[2])
