"""Macros and views of a publication, for use in plain SQL from any DuckDB client.

The SQL is in `sql/macros/*.sql` and `sql/graphrag_v3.sql`; once it is in the file, it does not need this package.

DuckDB resolves the names inside a macro in the query that calls it. Two rules keep that query out:

- A macro calls tables and macros of its file by `own.`, which stands for names that no other publication has: views and
  macros in the schema `search`. So it reads its own file, whatever else is attached, and fails if that is not on the
  search path.
- It reads its parameters where there are no tables: by `SELECT parameter AS _g_…` without FROM. Elsewhere an argument
  such as `r.community` would be a column of the table that is called r inside the macro.
"""

import functools
import re

import duckdb

from graphrag_assets.store.connections import one_value
from graphrag_assets.store.schema import PUBLISHED, literal, sql
from graphrag_assets.text import words as text

_FILES = ("search", "graph", "evidence")

_HOP = """
s{hop} AS MATERIALIZED (
    SELECT h.entity FROM h{before} h, _g_neighbors g WHERE g._g_hops >= {hop}
), h{hop} AS MATERIALIZED (
    SELECT {hop}::BIGINT AS hop, e.neighbor AS entity, max_by(
        {{'via': e.entity, 'relationship': e.relationship, 'weight': e.weight}}, (e.weight, -e.relationship)) AS best
    FROM s{hop} s JOIN own.edges e ON e.entity = s.entity
    WHERE e.neighbor NOT IN (SELECT h.entity FROM h{before} h UNION ALL SELECT h.entity FROM h{earlier} h)
    GROUP BY e.neighbor
),"""
_STEP = """
{side}{n} AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(own.longer_way(w.way, e.neighbor, e.relationship, e.weight),
                                        (w.way.weight + e.weight, -e.relationship)) AS way
    FROM own.edges e JOIN {side}{before} w ON w.entity = e.entity
    WHERE NOT EXISTS (FROM m{met}) AND EXISTS (FROM _g_path p WHERE p._g_hops > {met})
      AND e.neighbor NOT IN (SELECT o.entity FROM {side}{before} o UNION ALL SELECT o.entity FROM {side}{earlier} o)
    GROUP BY e.neighbor
), m{step} AS MATERIALIZED (
    FROM m{met} UNION ALL (SELECT f.way, g.way FROM f{n} f JOIN g{g} g ON g.entity = f.entity
                           ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
),"""
OWN = "put_this_index_on_the_search_path_"
"""The beginning of own names: an error of DuckDB names the table that it does not find."""
_OWN_NAME = re.compile(r"\bown\.(\w+)")


def write_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all macros and views in the publication that is the current database of `connection`.

    Its record must be written: own names have a part that no other publication has.
    """
    row = "coalesce(string_agg(p::VARCHAR, ''), '')"  # an empty file has none
    mark = one_value(connection, f"SELECT left(md5({row}), 8) FROM publication p")
    connection.begin()  # one commit, not one after each of a hundred statements
    connection.execute(sql("graphrag_v3"))
    connection.execute(_OWN_NAME.sub(rf"search.{OWN}{mark}_\1", macros_sql()))
    connection.commit()


@functools.cache
def macros_sql() -> str:
    """The statements that create all macros, with their comments, and own views; own names begin with `own.`."""
    accented = {chr(code): plain for code, plain in text.FOLDED.items() if len(plain) == 1}
    values = {
        "{hops}": "".join(_HOP.format(hop=n, before=n - 1, earlier=max(n - 2, 0)) for n in range(1, 5)),
        "{steps}": "".join(map(_step_of_a_path, range(1, 7))),
        "{unspaced}": _re2(text.UNSPACED),
        "{optional_marks}": _re2(text.OPTIONAL_MARKS),
        "{invisible}": _re2("".join(map(chr, text.INVISIBLE))),
        "{possessive}": literal(text.POSSESSIVE),
        "{wide}": literal("".join(map(chr, range(0xFF01, 0xFF5F)))),
        "{narrow}": literal("".join(map(chr, range(0x21, 0x7F)))),
        "{accented}": "".join(accented),
        "{plain}": "".join(accented.values()),
    }
    macros = "\n".join(sql(f"macros/{name}") for name in _FILES)
    for name, value in values.items():
        macros = macros.replace(name, value)
    names = set(_OWN_NAME.findall(macros))
    views = (f"CREATE VIEW own.{t.name} AS FROM {t.schema}.{t.name};\n" for t in PUBLISHED if t.name in names)
    return "".join(views) + macros


def _step_of_a_path(step: int) -> str:
    """The odd steps are from the first end of a path, the even ones from the other."""
    n, side = (step + 1) // 2, "f" if step % 2 else "g"
    return _STEP.format(side=side, n=n, before=n - 1, earlier=max(n - 2, 0), step=step, met=step - 1, g=step // 2)


def _re2(characters: str) -> str:
    return "".join(c if c.isascii() else f"\\x{{{ord(c):x}}}" for c in characters)
