"""Macros and views of a publication, for use in plain SQL from any DuckDB client.

The SQL is in `sql/macros/*.sql` and `sql/graphrag_v3.sql`; once it is in the file, it does not need this package.

DuckDB resolves the names inside a macro in the query that calls it. Two rules keep that query out:

- A macro calls tables and macros of its file by `this.`, for names that no other publication has: views and macros in
  the schema `search`. So it reads its own file, whatever else is attached, and fails if that is not on the search path.
- It reads its parameters where there are no tables: by `SELECT parameter AS _g_…` without FROM. Elsewhere an argument
  such as `r.community` would be a column of the table that is called r inside the macro.
"""

import functools
import re
import unicodedata

import duckdb

from graphrag_assets.store.connections import one_value
from graphrag_assets.store.schema import PUBLISHED, sql
from graphrag_assets.text.words import INVISIBLE, QUOTES

_FILES = ("names", "graph", "evidence")

_PREFIX = "put_this_index_on_the_search_path_"
"""The beginning of these names: an error of DuckDB names the table that it does not find."""
_NAME = re.compile(r"\bthis\.(\w+)")


def write_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all macros and views in the publication that is the current database of `connection`.

    Its record must be written: the names have a part that no other publication has.
    """
    row = "coalesce(string_agg(p::VARCHAR, ''), '')"  # an empty file has none
    mark = one_value(connection, f"SELECT left(md5({row}), 8) FROM publication p")
    connection.begin()  # one commit, not one after each of a hundred statements
    connection.execute(sql("graphrag_v3"))
    connection.execute(_NAME.sub(rf"search.{_PREFIX}{mark}_\1", macros_sql()))
    connection.commit()


def macros_source() -> str:
    """Return what the macros are made of, for a digest that no version of Python changes."""
    return "".join((*(sql(f"macros/{name}") for name in _FILES), QUOTES, *map(chr, INVISIBLE)))


@functools.cache
def macros_sql() -> str:
    """Return the statements that create all macros with comments, and the views that they read, named `this.…`."""
    macros = "\n".join(sql(f"macros/{name}") for name in _FILES)
    plain = {chr(code): _plain(chr(code)) for code in range(0x80, 0xFFFF) if code not in INVISIBLE}
    letters = {letter: other for letter, other in plain.items() if len(other) == 1 and other != letter.lower()}
    values = {
        "{invisible}": "".join(f"\\x{{{code:x}}}" for code in INVISIBLE),
        "{quotes}": QUOTES.replace("'", "''"),
        "{letters}": "".join(letters),
        "{plain}": "".join(letters.values()).replace("'", "''"),
    }
    for name, value in values.items():
        macros = macros.replace(name, value)
    names = set(_NAME.findall(macros))
    views = (f"CREATE VIEW this.{t.name} AS FROM {t.schema}.{t.name};\n" for t in PUBLISHED if t.name in names)
    return "".join(views) + macros


def _plain(letter: str) -> str:
    return unicodedata.normalize("NFKC", letter).casefold()
