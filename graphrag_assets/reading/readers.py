"""The readers of the conversion process: one for each library, and which formats it reads."""

from collections.abc import Callable

from graphrag_assets.reading.source_records import LoadOptions, Problem, Record

Read = Callable[[bytes, str, str, LoadOptions], list[Record | Problem]]
"""From the bytes of a file, its format, the text column of tables, and options."""
_READERS = {"pdf": "pdf", "parquet": "parquet", "html": "web", "eml": "web", "mbox": "web"}


def reader_of(file_format: str) -> str:
    """Return the name of the reader of a format: pdf, parquet, web or office."""
    return _READERS.get(file_format, "office")


def reader(name: str) -> Read:
    """Import the libraries of a reader and return it."""
    return {"pdf": _pdf, "parquet": _parquet, "web": _web, "office": _office}[name]()


def _pdf() -> Read:
    from graphrag_assets.reading.pdf import read_pdf

    return lambda data, file_format, column, options: read_pdf(data)


def _web() -> Read:
    from graphrag_assets.reading.mail import read_mail, read_mailbox
    from graphrag_assets.reading.web import read_page

    readers = {"html": lambda data: read_page(data.decode()), "eml": read_mail, "mbox": read_mailbox}
    return lambda data, file_format, column, options: readers[file_format](data)


def _office() -> Read:
    from graphrag_assets.reading.office import read_office

    return read_office


def _parquet() -> Read:
    import io

    import polars

    from graphrag_assets.reading.tables import parquet_records

    empty = io.BytesIO()
    polars.DataFrame({"text": []}).write_parquet(empty)
    parquet_records(empty.getvalue(), "text", LoadOptions())  # polars starts its threads
    return lambda data, file_format, column, options: parquet_records(data, column, options)
