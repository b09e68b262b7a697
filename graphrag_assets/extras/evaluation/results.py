"""The results of evaluations in a file of their own, so that they outlive the publications that were measured.

`evaluation.duckdb` has numbers alone: questions are known by their ids, and no text of a document is kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl
from filelock import FileLock

from graphrag_assets.errors import StoreError
from graphrag_assets.extras.evaluation.retrieval import Score
from graphrag_assets.store.connections import CONNECTION_CONFIG
from graphrag_assets.store.locks import is_locked, lock_file, when_unlocked

RESULTS = "evaluation.duckdb"
_LOCK_SECONDS = 5.0
"""How long another program may have the file open before this is an error."""
_TABLES = """
CREATE TABLE IF NOT EXISTS scores (
    publication INTEGER, purpose VARCHAR, made_with VARCHAR, question VARCHAR, method VARCHAR, metric VARCHAR,
    value DOUBLE, measured_at TIMESTAMP
);
CREATE TABLE IF NOT EXISTS verdicts (
    publication INTEGER, against INTEGER, method VARCHAR, metric VARCHAR, before DOUBLE, after DOUBLE, p DOUBLE,
    is_worse BOOLEAN, lost VARCHAR[], decided_at TIMESTAMP
);
CREATE OR REPLACE VIEW trend AS
SELECT publication, purpose, method, metric, avg(value) AS mean, count(*) AS questions, max(measured_at) AS measured_at
FROM scores GROUP BY ALL;
COMMENT ON TABLE scores IS 'One number per publication, question, method and metric; question is empty for the index.';
COMMENT ON TABLE verdicts IS 'What the gate found for a candidate, beside the last accepted publication.';
COMMENT ON VIEW trend IS 'The mean of each metric by publication and method.';
"""


class Verdict(NamedTuple):
    """What became of a metric in a candidate: its means, p, and the ids of questions that are worse, worst first."""

    method: str
    metric: str
    before: float
    after: float
    p: float
    is_worse: bool
    lost: list[str]


@contextmanager
def results(index_folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The results, open for reading and writing by this process alone.

    Raises:
        StoreError: the file is damaged, or another program keeps it open.
    """
    path = index_folder / RESULTS
    with FileLock(lock_file(index_folder, "evaluation")):
        try:
            connection = when_unlocked(lambda: duckdb.connect(str(path), config=CONNECTION_CONFIG), _LOCK_SECONDS)
        except duckdb.Error as error:
            remedy = (
                "If a DuckDB shell or notebook has it open, close it there."
                if is_locked(error)
                else "Move it away; the next evaluation begins a new one."
            )
            raise StoreError(f"{path} cannot be opened: {error}. {remedy}") from None
        try:
            connection.execute(_TABLES)
            yield connection
        finally:
            connection.close()


def record_scores(
    connection: duckdb.DuckDBPyConnection, publication: int, purpose: str, made_with: str, scores: Sequence[Score]
) -> None:
    """Replace the scores of a publication for a purpose: evaluate or gate."""
    rows = pl.DataFrame(
        scores, {"question": pl.String, "method": pl.String, "metric": pl.String, "value": pl.Float64}, orient="row"
    )
    given = {"publication": publication, "purpose": purpose, "made_with": made_with, "now": _now()}
    connection.execute("BEGIN")
    connection.execute(
        "DELETE FROM scores WHERE publication = $publication AND purpose = $purpose",
        {name: given[name] for name in ("publication", "purpose")},
    )
    connection.register("incoming", rows)
    connection.execute(
        "INSERT INTO scores SELECT $publication, $purpose, $made_with, question, method, metric, value, $now "
        "FROM incoming",
        given,
    )
    connection.unregister("incoming")
    connection.execute("COMMIT")


def recorded_scores(
    connection: duckdb.DuckDBPyConnection, publication: int, purpose: str, made_with: str
) -> list[Score]:
    """The scores of a publication for a purpose, made with the same code and settings."""
    query = (
        "SELECT question, method, metric, value FROM scores WHERE publication = $publication AND purpose = $purpose "
        "AND made_with = $made_with ORDER BY ALL"
    )
    given = {"publication": publication, "purpose": purpose, "made_with": made_with}
    return [Score(*row) for row in connection.execute(query, given).fetchall()]


def record_verdicts(
    connection: duckdb.DuckDBPyConnection, publication: int, against: int, verdicts: Sequence[Verdict]
) -> None:
    """Replace the verdicts on a publication."""
    connection.execute("DELETE FROM verdicts WHERE publication = $publication", {"publication": publication})
    for verdict in verdicts:
        row = [publication, against, *verdict, _now()]
        connection.execute(f"INSERT INTO verdicts VALUES ({', '.join('?' * len(row))})", row)


def verdicts_on(index_folder: Path, publication: int) -> tuple[int | None, list[Verdict]]:
    """The publication that one was compared with, and the verdicts; None and none if it was not measured."""
    if not (index_folder / RESULTS).exists():
        return None, []
    query = """
        SELECT against, method, metric, before, after, p, is_worse, lost FROM verdicts
        WHERE publication = $publication ORDER BY ALL
    """
    with results(index_folder) as connection:
        rows = connection.execute(query, {"publication": publication}).fetchall()
    return (rows[0][0] if rows else None), [Verdict(*row[1:]) for row in rows]


def trend(index_folder: Path, metric: str = "recall@5") -> pl.DataFrame:
    """publication, method, mean: of a metric by publication, as evaluations measured it; empty before the first."""
    if not (index_folder / RESULTS).exists():
        return pl.DataFrame(schema={"publication": pl.Int32, "method": pl.String, "mean": pl.Float64})
    with results(index_folder) as connection:
        query = (
            "SELECT publication, method, mean FROM trend WHERE purpose = 'evaluate' AND metric = $metric ORDER BY ALL"
        )
        return connection.sql(query, params={"metric": metric}).pl()


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
