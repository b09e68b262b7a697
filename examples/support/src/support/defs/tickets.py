"""The table of tickets, merged by their numbers as dlt does it: an upstream asset that knows nothing of the index."""

from pathlib import Path

import dagster as dg
import duckdb

PROJECT = Path(__file__).resolve().parents[3]
MERGE = """
CREATE SCHEMA IF NOT EXISTS raw;
CREATE TABLE IF NOT EXISTS raw.tickets (number INT, subject VARCHAR, body VARCHAR, product VARCHAR, created_on DATE);
BEGIN;
DELETE FROM raw.tickets WHERE number IN (SELECT number FROM incoming);
INSERT INTO raw.tickets BY NAME FROM incoming;
COMMIT;
"""


@dg.asset(key=["raw", "tickets"], group_name="raw", kinds={"duckdb"})
def tickets() -> dg.MaterializeResult:
    """One row is a ticket of a customer: number, subject, body, product, day."""
    with duckdb.connect(str(PROJECT / "warehouse.duckdb")) as connection:
        connection.read_csv(str(PROJECT / "tickets.csv")).create_view("incoming")
        connection.execute(MERGE)
        ((n_rows,),) = connection.execute("SELECT count(*) FROM raw.tickets").fetchall()
    return dg.MaterializeResult(metadata={"dagster/row_count": n_rows})
