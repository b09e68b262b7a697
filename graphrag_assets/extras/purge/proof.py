"""The proof of a purge: words that only removed documents have are searched for in every file of the data folder."""

import base64
import gzip
import json
import mmap
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import duckdb

from graphrag_assets.errors import StoreError
from graphrag_assets.indexing.index import Index
from graphrag_assets.store.connections import attached
from graphrag_assets.store.publication_files import kept_publications, publication_file
from graphrag_assets.store.schema import identifier

_MAX_WORDS = 100
_COMPRESSED = re.compile(rb"H4sI[A-Za-z0-9+/]{20,}={0,2}")  # gzip in base64, as explorer/page.py writes it
# Long enough that no compressed bytes spell one by chance.
_WORDS = r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]{5,}"
_OF_DOCUMENTS = "SELECT DISTINCT unnest(regexp_extract_all(text, $words)) AS word"
# Names and numbers: a word that is also written small may be one that a model uses unprompted.
# Every file has the words of comments and macros.
_DISTINCTIVE = f"""
SELECT folded FROM (
    SELECT lower(word) AS folded, bool_or(word = lower(word) AND word <> upper(word)) AS is_written_small
    FROM ({_OF_DOCUMENTS} FROM file.documents) GROUP BY ALL
) WHERE NOT is_written_small
    AND folded NOT IN (SELECT lower(word) FROM kept_words)
    AND folded NOT IN (SELECT lower(unnest(regexp_extract_all(described, $words))) FROM (
        SELECT comment AS described FROM duckdb_columns() UNION ALL SELECT comment FROM duckdb_tables()
        UNION ALL SELECT concat_ws(' ', comment, macro_definition) FROM duckdb_functions() WHERE database_name = 'file'
    ) WHERE described IS NOT NULL)
ORDER BY length(folded) DESC, folded LIMIT {_MAX_WORDS}
"""


def removed_words(index: Index) -> list[str]:
    """Names and numbers, in lower case, that documents of kept publications have and no present document has.

    The longest first, at most 100. Call it before the purge: afterwards nothing knows them.
    """
    folder, parameters = index.settings.index_folder, {"words": _WORDS}
    kept = index.working.read(f"{_OF_DOCUMENTS} FROM documents", parameters)
    words: set[str] = set()
    for number in kept_publications(folder):
        try:
            with attached(file=publication_file(folder, number)) as connection:
                connection.register("kept_words", kept)
                words.update(word for (word,) in connection.execute(_DISTINCTIVE, parameters).fetchall())
        except (duckdb.Error, StoreError):
            continue  # broken, or of another version: the purge removes it
    return sorted(words, key=lambda word: (-len(word), word))[:_MAX_WORDS]


def places_of(words: Sequence[str], index: Index) -> list[str]:
    """Where one of the words occurs below the data folder, except for the input: in names, bytes and rows of files.

    Databases are searched row by row too, because they may compress their values.

    Returns:
        file, or file and table, relative to the data folder, in order.
    """
    if not words:
        return []
    pattern, folder = "|".join(map(re.escape, _as_written(words))), index.settings.data
    documents = Path(index.settings.input_folder).resolve()
    found: set[str] = set()
    with index.working.lock():
        for file in folder.rglob("*"):
            if not file.is_file() or file.is_symlink() or documents in file.resolve().parents:
                continue
            name = str(file.relative_to(folder))
            if re.search(pattern, name.lower()) or _in_bytes(pattern, file):
                found.add(name)
            found.update(f"{name}: {table}" for table in _tables_with(pattern, file))
    return sorted(found)


def _as_written(words: Sequence[str]) -> list[str]:
    """The words as text and JSON may have them: small, capitalized and in capitals, in UTF-8 and with escapes."""
    forms = {form for word in words for form in (word, word.title(), word.upper())}
    return sorted(forms | {json.dumps(form)[1:-1] for form in forms}, key=lambda form: (-len(form), form))


def _in_bytes(pattern: str, file: Path) -> bool:
    if not file.stat().st_size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        sought = re.compile(pattern.encode(), re.IGNORECASE)  # ignores the case of a to z alone
        pages = [match[0] for match in _COMPRESSED.finditer(content)]  # all: an open search keeps the file open
        return sought.search(content) is not None or any(sought.search(_unpacked(page)) for page in pages)


def _unpacked(page: bytes) -> bytes:
    """The content of an explorer's page; empty for what only looks like one."""
    try:
        return gzip.decompress(base64.b64decode(page))
    except (ValueError, OSError, EOFError, zlib.error):
        return b""


def _tables_with(pattern: str, file: Path) -> Iterator[str]:
    # What is no database in spite of its name has no rows; its bytes are searched.
    with suppress(duckdb.Error, sqlite3.DatabaseError, StoreError):
        if file.suffix == ".duckdb":
            yield from _duckdb_tables_with(pattern, file)
        elif file.suffix in (".sqlite", ".db"):
            with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection:
                if any(re.search(pattern, line.lower()) for line in connection.iterdump()):
                    yield "rows"


def _duckdb_tables_with(pattern: str, file: Path) -> Iterator[str]:
    with attached(file=file) as connection:
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'file' ORDER BY ALL"
        ).fetchall()
        for schema, table in tables:
            query = (
                f"SELECT count(*) FROM file.{identifier(schema)}.{identifier(table)} t "
                "WHERE regexp_matches(lower(t::VARCHAR), $pattern)"
            )
            if connection.execute(query, {"pattern": pattern}).fetchone() != (0,):
                yield table
