"""`graphrag-assets sql`: one query, or a pipe."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphrag_assets.cli import main


@pytest.fixture
def index(sample_index) -> Path:
    return sample_index.root / "index"


def run(index: Path, *arguments: str, piped: str = "", status: int = 0):
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["sql", "--index", str(index), *arguments], input=piped)
    assert result.exit_code == status, result.output
    return result


def test_piped_queries_run_in_turn_up_to_the_first_that_fails(index):
    result = run(index, piped="SELECT 1 AS a;\nSELECT nothing FROM nowhere;\nSELECT 2 AS b;", status=1)
    assert result.stdout == "a\n1\n"
    assert "nowhere does not exist" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("query", ["DROP TABLE entities", "SELECT 'open", "COPY entities TO 'x.csv'"])
def test_invalid_query_exits_with_status_1_and_the_reason(index, query):
    result = run(index, query, status=1)
    assert (result.stdout, result.stderr.startswith("Error: Cannot")) == ("", True)


def test_a_query_may_begin_with_a_comment(index):
    assert run(index, "-- how many\nSELECT 1 AS a").stdout == "a\n1\n"


VALUES = (
    "true", "1::TINYINT", "1::SMALLINT", "1::INTEGER", "1::BIGINT", "1::HUGEINT", "1::UTINYINT", "1::USMALLINT",
    "1::UINTEGER", "1::UBIGINT", "1::UHUGEINT", "123456789012345678901234567890::BIGNUM", "1.5::FLOAT", "'nan'::DOUBLE",
    "'-inf'::DOUBLE", "1.50::DECIMAL(9, 2)", "'infinity'::DATE", "'-infinity'::TIMESTAMP", "'2020-01-01'::TIMESTAMPTZ",
    "'2020-01-01'::TIMESTAMP_NS", "'2020-01-01'::TIMESTAMP_MS", "'2020-01-01'::TIMESTAMP_S", "'10:00'::TIME",
    "'10:00:00+02'::TIMETZ", "'10:00:00'::TIME_NS", "INTERVAL 1 MONTH", "'0101'::BIT", "'\\xAA'::BLOB",
    "'00000000-0000-0000-0000-000000000001'::UUID", "'a'::ENUM('a', 'b')", "[1, 2]", "[1.5, 2]::FLOAT[2]",
    "{'a': INTERVAL 1 DAY}", "MAP {[1]: 'x'}", "union_value(k := INTERVAL 1 DAY)", "[union_value(k := '\\xAA'::BLOB)]",
    "['nan'::DOUBLE, NULL]", "'{}'::JSON", "{'a': 1}::VARIANT", "'POINT(1 2)'::GEOMETRY", "row(1, 'NaN')", "NULL", "'x'",
)  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_every_type_is_printed_in_every_format(index, form):
    query = f"SELECT {', '.join(f'{value} AS v{place}' for place, value in enumerate(VALUES))}"
    printed = run(index, "--format", form, query).stdout
    assert "Series" not in printed
    if form == "json":
        (row,) = json.loads(printed, parse_constant=pytest.fail)
        assert (row["v5"], row["v13"], row["v25"], row["v36"]) == (1, None, "1 month", [None, None])
        assert (row["v31"], row["v40"], row["v34"]) == ([1.5, 2.0], [1, "NaN"], {"k": "1 day"})
    elif form == "csv":
        _, row = csv.reader(io.StringIO(printed))
        assert (row[13], row[16], row[25], row[26], row[31]) == ("nan", "infinity", "1 month", "0101", "[1.5,2.0]")
    else:
        assert "v25  1 month" in printed


def test_a_file_is_queried_as_a_table(index, tmp_path):
    (tmp_path / "mine.csv").write_text("name,share\nCyrus Field,0.5\nnobody,1\n")
    query = "SELECT e.title, mine.share FROM mine JOIN entities e ON e.title = mine.name"
    assert run(index, "--table", f"mine={tmp_path}/mine.csv", query).stdout == "title,share\nCyrus Field,0.5\n"
    for table, message in (("mine", "is not name=file"), (f"mine={tmp_path}/none.csv", "cannot read")):
        assert message in run(index, "--table", table, query, status=2).stderr
