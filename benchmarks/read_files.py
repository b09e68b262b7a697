"""CPU seconds and peak memory of reading a folder of files: `python -m benchmarks.read_files FOLDER`.

Of all processes that convert them, and of this one; texts are read, not cut or extracted.
"""

import resource
import sys
import time
from pathlib import Path

import polars as pl

from graphrag_assets.pipeline.loading import LoadOptions, load_documents
from graphrag_assets.reading.process import ConversionProcess
from graphrag_assets.reading.source_records import ConversionLimits
from graphrag_assets.store.input_files import InputFolder
from graphrag_assets.text.languages import language_of
from graphrag_assets.text.words import encode


def main() -> None:
    folder = InputFolder(str(Path(sys.argv[1]).absolute()))
    language_of("Loads the model of languages.")
    encode("Loads the tokenizer.")
    before, started = _cpu_seconds(), time.monotonic()
    documents, errors = [], []
    with ConversionProcess(ConversionLimits()) as convert:
        for batch, files, *_ in folder.list_batches():
            loaded = load_documents(batch, files, LoadOptions(), convert)
            documents.append(loaded.documents)
            errors.append(loaded.errors)
    read, failed = pl.concat(documents), pl.concat(errors)
    print(
        f"{read['source'].n_unique()} files with {read.height} documents and {read['n_tokens'].sum():,} tokens, "
        f"{failed.height} problems: {_cpu_seconds() - before:.1f} CPU s in {time.monotonic() - started:.1f} s, "
        f"peak of a conversion process {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000:.0f} MB"
    )


def _cpu_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
