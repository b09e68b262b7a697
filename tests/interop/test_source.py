"""List columns and findings are parsed from every file format."""

import polars as pl
import pytest

from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.exporter import export
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.extras.interop.source import read_source
from tests.interop.small_index import tables


def entities_with(folder, column, suffix="parquet"):
    frame = pl.DataFrame({"title": ["A"] * len(column), "text_unit_ids": column})
    (frame.write_parquet if suffix == "parquet" else frame.write_csv)(folder / f"entities.{suffix}")
    return read_source(folder).entities["text_unit_ids"].to_list()


def test_ids_in_lists_are_unchanged(tmp_path):
    ids = ["part one, 'quoted' [1]", "b", 'c "d"']
    assert entities_with(tmp_path, [ids, [], None, ["", None, "x y"]]) == [ids, [], [], ["x y"]]


def test_an_index_of_graphrag_0_is_refused_with_the_remedy(tmp_path):
    pl.DataFrame({"id": ["e"], "name": ["A"]}).write_parquet(tmp_path / "create_final_entities.parquet")
    pl.DataFrame({"id": ["u"], "chunk": ["t"]}).write_parquet(tmp_path / "create_final_text_units.parquet")
    with pytest.raises(InputError, match=r"an index of GraphRAG 0, which is not imported.* Index its documents again"):
        read_source(tmp_path)


def test_ids_in_texts_are_json_or_separated(tmp_path):
    texts = ['["a b", "c,d"]', "['a' 'b']", "['a', 'b']", "a,b", "a", None, "[]"]
    expected = [["a b", "c,d"], ["a", "b"], ["a", "b"], ["a", "b"], ["a"], [], []]
    assert entities_with(tmp_path, texts, "csv") == expected


def test_the_single_document_of_a_text_unit_is_one_id(tmp_path):
    entities_with(tmp_path, [["u"]])
    units = pl.DataFrame({"id": ["u", "v"], "document_id": ["my file, part [1].txt", None], "text": ["t", "t"]})
    units.write_parquet(tmp_path / "text_units.parquet")
    assert read_source(tmp_path).text_units["document_ids"].to_list() == [["my file, part [1].txt"], []]


def test_findings_are_read_from_texts_or_counted(tmp_path):
    entities_with(tmp_path, [["u"]])
    json, python = '[{"summary": "s", "explanation": "e"}]', "[{'summary': \"it's\", 'explanation': None}]"
    texts = [json, python, '["plain"]', "[{'a': 1}\n {'b': 2}]", "nothing", None]
    frame = pl.DataFrame({"community": range(6), "findings": texts})
    frame.write_csv(tmp_path / "community_reports.csv")
    source = read_source(tmp_path)
    assert source.reports["findings"].to_list() == [
        [{"summary": "s", "explanation": "e"}],
        [{"summary": "it's", "explanation": ""}],
        [{"summary": "", "explanation": "plain"}],
        None,
        None,
        None,
    ]
    assert +source.left_out == {("community_reports", "unreadable findings, left out"): 2}


@pytest.mark.extended
def test_a_csv_export_is_imported_with_its_findings(project, small, tmp_path):
    export("csv", tmp_path / "csv", small.root / "index")
    again = import_index(project.index, tmp_path / "csv", "again")
    assert again.counts.filter(pl.col("step") == "repaired").is_empty()
    reports = "SELECT community, title, findings FROM community_reports ORDER BY community"
    assert project.sql(reports) == small.sql(reports)
    units = "SELECT id, document_id, entity_ids FROM text_units ORDER BY id"
    assert project.sql(units) == small.sql(units)


def test_missing_name_columns_are_an_error(project, tmp_path):
    pl.DataFrame({"entity": ["A"], "type": ["T"]}).write_csv(tmp_path / "entities.csv")
    with pytest.raises(InputError, match=r"entities in .* has no column title or name. It has: 'entity', 'type'"):
        import_index(project.index, tmp_path)
    (tmp_path / "entities.csv").unlink()
    for delimiter in ";\t":
        (tmp_path / "relationships.csv").write_text(f"source{delimiter}target\nA{delimiter}B\n")
        with pytest.raises(InputError, match=r"no column source and no column target.* separated by commas"):
            import_index(project.index, tmp_path)


def test_index_without_usable_rows_is_rejected(project, tmp_path):
    nameless = tables()["entities"].with_columns(title=pl.lit(None, pl.String))
    nameless.write_parquet(tmp_path / "entities.parquet")
    with pytest.raises(InputError, match="none of 8 rows can be imported"):
        import_index(project.index, tmp_path)
    assert project.index.working.read("SELECT count(*) FROM batch_state").item() == 0
