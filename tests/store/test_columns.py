"""What holds for every column of a publication, also of a table that is yet to come."""


def test_no_text_stands_for_a_missing_one(index):
    columns = index.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name IN ('main', 'operations') AND data_type = 'VARCHAR' AND NOT internal"
    ).fetchall()
    said = "lower({}) IN ('none', 'null', 'n/a', 'nan')"
    found = {
        (table, column): index.execute(
            f'SELECT count(*) FROM {schema}."{table}" WHERE {said.format(column)}'
        ).fetchall()
        for schema, table, column in columns
    }
    assert {place for place, rows in found.items() if rows != [(0,)]} == set()
    assert index.execute("SELECT count(*) FROM covariates WHERE object_id IS NULL").fetchall() > [(0,)]
