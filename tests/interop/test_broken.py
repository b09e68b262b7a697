"""Imports of incomplete or broken indexes end with counts, not with a traceback."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_assets.extras.interop.facts import entity_ids, facts_of
from graphrag_assets.extras.interop.hierarchy import hierarchy_of
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.extras.interop.report_rows import renumbered, report_rows
from graphrag_assets.extras.interop.source import MAX_NUMBER, source_of
from graphrag_assets.extras.interop.vectors import VECTORS
from graphrag_assets.pipeline.merging import merge
from graphrag_assets.pipeline.resolution import ALIAS_SCHEMA
from graphrag_assets.store.imports import counts_of
from tests.interop.small_index import tables


def write(folder, frames):
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
    return folder


def counts(project, batch):
    found = counts_of(project.index.working, batch).filter(pl.col("step") != "read")
    return {(table, what): n for _, table, what, n in found.iter_rows()}


@pytest.mark.long
@pytest.mark.parametrize("missing", ["documents", "text_units", "covariates", "communities", "community_reports"])
def test_a_table_may_be_missing(project, tmp_path, missing):
    frames = {name: frame for name, frame in tables().items() if name != missing}
    import_index(project.index, write(tmp_path / "index", frames))
    found = counts(project, "imported-index")
    assert found["entities", "rows"] == 7
    assert project.sql("SELECT count(*) FROM communities WHERE size > 1") == [(found["community_reports", "rows"],)]
    if missing == "documents":
        assert found["documents", "rows"] == 2
        assert project.sql("SELECT count(*) FROM text_units WHERE start_char IS NULL") == [(0,)]
    if missing == "text_units":
        assert found["entities", "without a text unit, given a text of what the graph says of them"] == 7
    if missing == "communities":
        assert found["community_reports", "of missing communities, left out"] == 4


@pytest.mark.extended
def test_communities_without_members_are_counted_with_their_reports(project, tmp_path):
    frames = tables()
    frames["communities"] = frames["communities"].with_columns(entity_ids=pl.lit([], pl.List(pl.String)))
    import_index(project.index, write(tmp_path / "index", frames))
    found = counts(project, "imported-index")
    assert found["communities", "without members, left out"] == 4
    assert found["community_reports", "of missing communities, left out"] == 4


def with_first(frame, column, value):
    """`frame` with another value in the first row of a column, as far as polars can hold it."""
    given = frame[column].to_list() if column in frame.columns else list(range(frame.height))
    return frame.with_columns(pl.Series(column, [value, *given[1:]], strict=False))


@pytest.mark.long
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_rank_and_weight_that_are_no_numbers_are_missing(project, tmp_path, value):
    frames = tables()
    frames["community_reports"] = with_first(frames["community_reports"], "rank", value)
    frames["relationships"] = with_first(frames["relationships"], "weight", value)
    import_index(project.index, write(tmp_path / "index", frames))
    assert project.sql("SELECT count(*) FROM community_reports WHERE NOT isfinite(rank)") == [(0,)]
    assert project.sql("SELECT count(*) FROM relationships WHERE NOT isfinite(weight)") == [(0,)]


def test_text_units_of_a_missing_document_are_left_out_and_named(caplog):
    frames = tables()
    frames["text_units"] = with_first(frames["text_units"], "document_id", "nowhere")
    counts = Counter()
    facts = facts_of(
        source_of("", frames, pl.DataFrame(schema=VECTORS)),
        "b",
        dict.fromkeys(("documents", "text_units", "covariates"), NONE),
        counts,
    )
    assert counts["text_units", "of missing documents, left out"] == 1
    assert "u0" not in facts.frames["text_units"]["id"]
    assert f"of missing documents, left out: {frames['text_units']['id'][0]}" in caplog.text


@pytest.mark.parametrize(
    ("table", "column", "value", "limit"),
    [
        ("communities", "community", 2**62, "10,000,000"),
        ("communities", "community", "4611686018427387904", "10,000,000"),
        ("communities", "level", 2**62, "100"),
        ("communities", "level", 101, "100"),
        ("community_reports", "community", float("inf"), "10,000,000"),
        ("entities", "human_readable_id", -(2**62), "10,000,000"),
        ("text_units", "n_tokens", 2**31, "10,000,000"),
    ],
)
def test_row_with_a_number_that_is_too_large_is_left_out_and_named(table, column, value, limit, caplog):
    frames = tables()
    frames[table] = with_first(frames[table], column, value)
    source = source_of("", frames, pl.DataFrame(schema=VECTORS))
    why = f"with a {column} above {limit}"
    assert source.left_out[table, f"{why}, left out"] == 1
    assert source.rows()[table] == frames[table].height - 1
    assert (
        f"{table}: 1 rows {why}, left out: {frames[table]['title' if table != 'text_units' else 'id'][0]}"
        in caplog.text
    )


@pytest.mark.long  # takes nine seconds, because the largest number decides
def test_largest_numbers_are_imported(project, tmp_path):
    frames = tables()
    frames["entities"] = with_first(frames["entities"], "human_readable_id", MAX_NUMBER)
    import_index(project.index, write(tmp_path / "index", frames))
    assert (MAX_NUMBER,) in project.sql("SELECT human_readable_id FROM entities")


@pytest.mark.extended
def test_an_index_without_rows_is_imported_as_one(project, tmp_path):
    import_index(project.index, write(tmp_path / "index", {name: frame.head(0) for name, frame in tables().items()}))
    assert project.sql("SELECT count(*) FROM entities") == [(0,)]


@pytest.mark.long
def test_metadata_other_than_json_is_kept_as_text(project, tmp_path):
    frames = tables()
    frames["documents"] = frames["documents"].with_columns(metadata=pl.Series(["{not json", '{"author": "me"}']))
    import_index(project.index, write(tmp_path / "index", frames))
    assert project.sql("SELECT raw_data->>'$' FROM documents ORDER BY human_readable_id")[0] == ("{not json",)
    assert project.sql("SELECT raw_data->>'author' FROM documents ORDER BY human_readable_id")[1] == ("me",)


FAULTS = {
    "null": lambda frame, column: frame.with_columns(pl.lit(None, frame.schema[column]).alias(column)),
    "gone": lambda frame, column: frame.drop(column),
    "same": lambda frame, column: frame.with_columns(pl.col(column).first()),
    "other type": lambda frame, column: frame.with_columns(pl.lit(7).alias(column)),
}


def _columns():
    return [(name, column) for name, frame in tables().items() for column in frame.columns]


@pytest.mark.long
@example([(("covariates", "id"), "gone")])
@given(st.lists(st.tuples(st.sampled_from(_columns()), st.sampled_from(sorted(FAULTS))), min_size=1, max_size=4))
def test_no_fault_of_a_column_stops_an_import(faults):
    frames = tables()
    for (name, column), fault in faults:
        if column in frames[name].columns and frames[name].width > 1:
            frames[name] = FAULTS[fault](frames[name], column)
    repaired(source_of("GraphRAG 3", frames, pl.DataFrame(schema=VECTORS)))


def repaired(source):
    """Everything of an import that depends on what the index holds."""
    found = Counter()
    facts = facts_of(source, "batch", dict.fromkeys(("documents", "text_units", "covariates"), NONE), found)
    frames = facts.frames
    assert all(frame["id"].is_unique().all() and not frame["id"].null_count() for frame in frames.values())
    units = set(frames["text_units"]["id"])
    assert set(frames["entity_mentions"]["text_unit_id"]) <= units
    aliases = pl.DataFrame(schema=ALIAS_SCHEMA)
    graph = merge(frames["entity_mentions"], frames["relationship_mentions"], aliases)
    keys = facts.keys.select("id", entity_id=entity_ids(facts.keys["key"]))
    hierarchy = hierarchy_of(source.communities, source.members, keys, graph.entities, graph.relationships, found)
    assert not hierarchy.communities["community"].null_count()
    reports = report_rows(source.reports, hierarchy.communities["community"], found)
    assert renumbered(reports, {}, found).height == reports.height
    assert min(found.values()) >= 0


NONE = pl.Series([], dtype=pl.String)
