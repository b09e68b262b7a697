import math

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_assets.store import schema
from graphrag_assets.store.connections import ArrowStream
from graphrag_assets.store.index_database import Changes, replace_rows, replace_table

STRUCTS = 'STRUCT("type" VARCHAR, n BIGINT)[]'
COLUMNS = {
    "name": "VARCHAR",
    "batch": "VARCHAR",
    "number": "BIGINT",
    "weight": "DOUBLE",
    "small": "FLOAT",
    "day": "DATE",
    "names": "VARCHAR[]",
    "vector": "FLOAT[]",
    "types": STRUCTS,
}
TABLE = schema.Table("things", "", ("name",), tuple(schema.Column(name, kind, "") for name, kind in COLUMNS.items()))
TYPES = {name: schema.POLARS_TYPES[kind] for name, kind in COLUMNS.items() if kind != STRUCTS}
TYPES["types"] = pl.List(pl.Struct({"type": pl.String, "n": pl.Int64}))
TEXTS = st.sampled_from([None, "", "a", "b", "NULL", "[]", "a, b", "'", "\\"])
NUMBERS = st.sampled_from([None, 0, 1, -1, 2**62])
FLOATS = st.sampled_from([None, 0.0, -0.0, 1.0, 0.1, math.nan, math.inf])
THINGS = st.none() | st.builds(lambda kind, n: {"type": kind, "n": n}, TEXTS, NUMBERS)
ROWS = st.fixed_dictionaries(
    {
        "name": TEXTS,
        "batch": st.sampled_from([None, "one", "two"]),
        "number": NUMBERS,
        "weight": FLOATS,
        "small": FLOATS,
        "day": st.none() | st.dates(),
        "names": st.none() | st.lists(TEXTS, max_size=3),
        "vector": st.none() | st.lists(FLOATS, max_size=3),
        "types": st.none() | st.lists(THINGS, max_size=2),
    }
)


def connected(rows: pl.DataFrame) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE.ddl())
    connection.register("before", ArrowStream(rows))
    connection.execute("INSERT INTO things BY NAME FROM before")
    return connection


def count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0])


@settings(max_examples=150, deadline=None)
@given(st.lists(ROWS, max_size=6), st.lists(ROWS, max_size=6), st.data())
def test_replacing_by_hashes_writes_what_except_finds(before, after, data):
    kept = data.draw(st.lists(st.sampled_from(before), max_size=4) if before else st.just([]))
    old, new = (pl.DataFrame(rows, schema=TYPES) for rows in (before, [*kept, *after]))
    scope = data.draw(st.sampled_from(["true", "batch = 'one'"]))
    new = new if scope == "true" else new.with_columns(batch=pl.lit("one"))
    with connected(old) as connection:
        connection.register("new", ArrowStream(new))
        connection.execute(f"CREATE TABLE others AS FROM things WHERE {scope} IS DISTINCT FROM true")
        stored, given_rows = f"FROM things WHERE {scope}", "SELECT * FROM new"
        deleted = count(connection, stored) - count(connection, f"{stored} INTERSECT FROM new")
        inserted = count(connection, f"FROM new EXCEPT ({stored})")
        changes = replace_table(connection, TABLE, data.draw(st.sampled_from([new, given_rows])), scope)
        assert changes == Changes(new.height, inserted, deleted)
        assert count(connection, f"{stored} EXCEPT FROM new") == 0
        assert count(connection, f"FROM new EXCEPT ({stored})") == 0
        assert count(connection, stored) == count(connection, "SELECT DISTINCT * FROM new")
        assert count(connection, "FROM others EXCEPT ALL FROM things") == 0


def test_a_null_list_an_empty_one_and_one_of_a_null_are_three_values():
    values = (None, [], [None], None)
    rows = [pl.DataFrame([{"name": "a", "names": names, "vector": names}], schema=TYPES) for names in values]
    with connected(rows[0]) as connection:
        for row in rows[1:]:
            assert replace_table(connection, TABLE, row) == Changes(rows=1, inserted=1, deleted=1)


def test_rows_of_some_ids_are_replaced_and_others_stay():
    def things(**weights: float) -> pl.DataFrame:
        return pl.DataFrame([{"name": name, "weight": weight} for name, weight in weights.items()], schema=TYPES)

    with connected(things(a=0, b=0, c=0)) as connection:
        changes = replace_rows(connection, TABLE, things(a=1, d=1), "name", pl.Series(["a", "b", "d"]))
        assert changes == Changes(rows=3, inserted=2, deleted=2)
        stored = connection.execute("SELECT name, weight FROM things ORDER BY ALL").fetchall()
    assert stored == [("a", 1), ("c", 0), ("d", 1)]
