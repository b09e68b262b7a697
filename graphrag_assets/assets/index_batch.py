"""Indexes one batch, in two halves: extract it, and commit what was extracted.

The first half needs the input folder and models, the second the working database. Where several machines share a
ledger, any of them may do the first half for the models' answers, see `ask_about_batch`. Several batches are worked on
at once: their model calls share one pool, and each is committed when it is complete. A small batch alone would leave
the models idle.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import asdict
from typing import NamedTuple, TypeVar

import polars as pl

from graphrag_assets import __version__
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.stage import usage_sums
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import LOSS_STAGES
from graphrag_assets.embedded import EXTRACTOR
from graphrag_assets.errors import InputError, SettingsError, full_disk_in
from graphrag_assets.ids import stable_id
from graphrag_assets.llm.event_loop import cancel_calls
from graphrag_assets.pipeline.batch import (
    NO_FACTS,
    KnownFacts,
    extract_facts,
    read_corpus,
)
from graphrag_assets.pipeline.chunking import ChunkOptions
from graphrag_assets.pipeline.loading import LoadOptions
from graphrag_assets.reading.process import conversion_process
from graphrag_assets.reading.source_records import ConversionLimits
from graphrag_assets.runtime.processes import restart_peak
from graphrag_assets.runtime.tracing import span
from graphrag_assets.settings import Settings
from graphrag_assets.store.batches import (
    UsageByTask,
    batches_of,
    known_facts,
    recorded_errors,
    write_batch,
)
from graphrag_assets.store.index_database import Changes
from graphrag_assets.store.input_files import SourceFile

CORPUS_VERSION = 10
"""Incremented when the same files give other documents or text units: all batches are read again."""
CODE_VERSION = f"{CORPUS_VERSION}/{EXTRACTOR}"
"""Differs when the same files give other rows."""
CHUNK_OVERLAP = 100
"""Tokens shared by neighboring text units of the method `tokens`: GraphRAG's default, with its boundaries."""
DELETED = "gone"
"""Stands for the content of a batch that is not in the input folder."""


Result = TypeVar("Result")
_SECONDS_BETWEEN_CANCELS = 0.1


class IndexedBatch(NamedTuple):
    """Frames by table, rows of index_errors, usage of models by task; changes by table once they are committed."""

    frames: dict[str, pl.DataFrame]
    errors: pl.DataFrame
    usage: UsageByTask
    changes: Mapping[str, Changes] = {}


class Reading:
    """Lets one batch at a time be read: conversion takes memory and processors, answers of models time alone."""

    def __init__(self) -> None:
        self.canceled = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Yield the turn of one batch; CancelledError once the run is canceled."""
        with self._lock:
            if self.canceled:
                raise CancelledError
            yield


def batches_at_once(settings: Settings) -> int:
    """How many batches are worked on at once: with a chat model enough to keep it busy, otherwise one."""
    by_model = settings.choices.extraction == "model"
    return settings.concurrency if by_model else 1


def load_options(settings: Settings) -> LoadOptions:
    return LoadOptions(
        text_column=settings.text_column,
        title_column=settings.title_column,
        id_column=settings.id_column,
        date_column=settings.date_column,
        text_encoding=settings.text_encoding,
        tokenizer=settings.tokenizer,
    )


def chunk_options(settings: Settings) -> ChunkOptions:
    return ChunkOptions(
        method=settings.chunking,
        size=settings.max_unit_tokens,
        overlap=min(CHUNK_OVERLAP, settings.max_unit_tokens // 2),
        encoding=settings.tokenizer,
        whole=settings.choices.extraction == "model",
    )


def deciding_options(settings: Settings, models: IndexingModels) -> dict[str, str]:
    """Everything but the files that determines the rows of a batch, by name."""
    options: dict[str, object] = {
        **asdict(load_options(settings)),
        **{f"chunk_{name}": value for name, value in asdict(chunk_options(settings)).items()},
        "extractor": models.extractor,
        "metadata_columns": settings.metadata_column_list,
        "corpus_version": CORPUS_VERSION,
    }
    return {name: str(value) for name, value in options.items()}


def same_on_all_machines(settings: Settings, models: IndexingModels) -> dict[str, str]:
    """Return what the machines that share a ledger must have in common: `deciding_options`, and the versions of the
    code.
    """
    return {**deciding_options(settings, models), "code_version": CODE_VERSION, "version": __version__}


def batch_digest(index: Index, batch: str, files: list[SourceFile]) -> str:
    """Hash of the batch's files and of everything that determines its rows.

    Of files that were read it is the content that was read.
    """
    if not files:
        return stable_id(DELETED)  # has no rows, whatever the settings
    return stable_id(index.input.digest(batch, files), *deciding_options(index.settings, index.models()).items())


def refuse_imported(index: Index, batch: str) -> None:
    """Raise InputError for an imported batch; there are no files to index it from."""
    origins = index.working.read("SELECT origin FROM batch_state WHERE batch = $batch", {"batch": batch})
    if origins["origin"].drop_nulls().len():
        raise InputError(
            f"The batch {batch!r} was imported from {origins['origin'].item()}. Give the entry of the input folder "
            f"another name, or run `graphrag-assets import --remove {batch}` first."
        )


def index_batch(
    index: Index, batch: str, models: IndexingModels, run_id: str, reading: Reading | None = None
) -> IndexedBatch:
    """Index one batch.

    Text units already extracted by the same extractor are not extracted again. A batch that is no longer in the input
    folder commits no rows, which removes it from the index. `reading`: of the batches that are indexed at the same
    time, while the caller holds the writer lock.

    Raises:
        InputError: the batch is an imported one; there are no files to index it from.
        DiskFullError: there is no space for what the batch writes.
    """
    step = f"index_batch of {batch!r}"
    lock = contextlib.nullcontext() if reading else index.working.writing(step, run_id)
    with full_disk_in(step), lock, span("index_batch"):
        refuse_imported(index, batch)
        started, files = time.monotonic(), index.input.files(batch)
        stored = stored_facts(index, batch, [file.path for file in files], models)
        extracted = extract_batch(index, batch, models, files, stored, reading)
        digest, seconds = batch_digest(index, batch, files), time.monotonic() - started
        with index.working.transaction() as connection:
            rows, errors, usage, _ = extracted
            changes = write_batch(connection, batch, rows, errors, digest, run_id, seconds, usage)
        return extracted._replace(changes=changes)


def extract_batch(
    index: Index,
    batch: str,
    models: IndexingModels,
    files: list[SourceFile],
    stored: KnownFacts = NO_FACTS,
    reading: Reading | None = None,
) -> IndexedBatch:
    """Read and chunk the files of a batch, and extract its text units.

    Neither reads nor writes the working database: `stored` is what it has of the batch.
    """
    restart_peak()
    columns = index.settings.metadata_column_list
    with (reading or Reading()).turn():
        documents, text_units, errors = read_batch(index.settings, batch, files)
    frames, errors = extract_facts(
        documents, text_units, errors, stored, models.extract, models.extractor, metadata_columns=columns
    )
    return IndexedBatch(frames, errors, usage_sums(models.usage))


def ask_about_batch(index: Index, batch: str, models: IndexingModels, elsewhere: Mapping[str, str]) -> IndexedBatch:
    """Extract a batch for the answers of the models alone, which are in the ledger then. Uses no working database.

    Args:
        elsewhere: `same_on_all_machines` on the machine that indexes the batch.

    Raises:
        SettingsError: with the settings of this machine that one would not find the answers.
        InputError: the input of this machine has no such batch.
    """
    here = same_on_all_machines(index.settings, models)
    names = sorted(name for name in here.keys() | elsewhere.keys() if here.get(name) != elsewhere.get(name))
    if names:
        differing = "; ".join(f"{name}: {elsewhere.get(name)} there, {here.get(name)} here" for name in names)
        raise SettingsError(
            "The machine with the index would not find the answers, because it has other settings: "
            f"{differing}. Give all machines the same settings, prompts and version."
        )
    files = index.input.files(batch)
    if not files:
        raise InputError(f"The input {index.settings.input_as_given} has no batch {batch!r} on this machine.")
    return extract_batch(index, batch, models, files)


def read_batch(
    settings: Settings, batch: str, files: Iterable[SourceFile]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the documents of a batch, its text units and its errors, see `read_corpus`."""
    load, chunk = load_options(settings), chunk_options(settings)
    convert = conversion_process(ConversionLimits())
    return read_corpus(batch, files, load, chunk, convert, settings.metadata_column_list)


def stored_facts(index: Index, batch: str, sources: Sequence[str], models: IndexingModels) -> KnownFacts:
    """Read the facts of a batch and its files that are not extracted again."""
    batches = batches_of(index.working, batch, sources)
    units, *stored = known_facts(index.working, batches, sources, models.extractor)
    stored.append(recorded_errors(index.working, batches, *LOSS_STAGES))
    return KnownFacts(units, *(frame.with_columns(batch=pl.lit(batch)) for frame in stored))


def work_on(
    batches: Sequence[str],
    work: Callable[[str, Reading], Result],
    at_once: int,
    is_last: Callable[[Result | Exception], bool] = lambda _: False,
) -> Generator[tuple[str, Result | Exception], None, None]:
    """Yield each batch with its result or its error, as they complete; `at_once`: the maximum number in progress.

    After a result that `is_last` no batch begins; those in progress are completed, as far as they come: what they have
    paid for is not left. Ending the iteration early cancels them.
    """
    reading, threads = Reading(), set[threading.Thread]()

    def run(batch: str) -> Result | Exception:
        threads.add(threading.current_thread())
        try:
            return work(batch, reading)
        except Exception as error:
            return error

    if min(at_once, len(batches)) <= 1:  # in this thread, where signals arrive
        for batch in batches:
            outcome = run(batch)
            yield batch, outcome
            if is_last(outcome):
                return
        return
    with ThreadPoolExecutor(at_once, "batch") as executor:
        completed = queue.SimpleQueue[Future[Result | Exception]]()
        futures = {executor.submit(copy_context().run, run, batch): batch for batch in batches}
        for future in futures:
            future.add_done_callback(completed.put)
        try:
            for _ in futures:
                future = completed.get()
                if future.cancelled():
                    continue
                if is_last(future.result()):
                    executor.shutdown(wait=False, cancel_futures=True)
                yield futures[future], future.result()
        finally:
            reading.canceled = True
            executor.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in futures):
                for thread in threads:  # one may just be about to make calls
                    cancel_calls(thread)
                wait(futures, _SECONDS_BETWEEN_CANCELS)
