"""The views of GraphRAG 3's tables."""

import pytest

from tests.conftest import TEST_DATA

V3 = ("documents", "text_units", "entities", "relationships", "communities", "community_reports", "covariates")


def columns_of(connection, source: str) -> list[tuple[str, str]]:
    return [row[:2] for row in connection.execute(f"DESCRIBE FROM {source}").fetchall()]


@pytest.mark.parametrize("table", V3)
def test_the_views_have_the_columns_and_types_of_graphrag_3(index, table):
    theirs = columns_of(index, f"'{TEST_DATA}/christmas-carol/graphrag-v3/{table}.parquet'")
    theirs = [(name, "VARCHAR" if name == "raw_data" else kind) for name, kind in theirs]  # there it is empty
    assert columns_of(index, f"graphrag_v3.{table}") == theirs


def test_the_views_join_by_title_as_graphrag_does(index):
    lost = index.execute(
        "SELECT count(*) FROM graphrag_v3.relationships r "
        "WHERE r.source NOT IN (SELECT title FROM graphrag_v3.entities) "
        "OR r.target NOT IN (SELECT title FROM graphrag_v3.entities)"
    ).fetchall()
    assert lost == [(0,)]
    for table in V3:
        assert (
            index.execute(f"SELECT count(*) FROM graphrag_v3.{table}").fetchall()
            == index.execute(f"SELECT count(*) FROM {table}").fetchall()
        )
    assert index.execute("SELECT count(*) FROM graphrag_v3.entities WHERE title <> upper(title)").fetchall() == [(0,)]
    assert index.execute("SELECT findings[1].explanation FROM graphrag_v3.community_reports LIMIT 1").fetchall()[0][0]
