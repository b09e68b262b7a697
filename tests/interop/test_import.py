"""An imported index keeps its communities and reports; documents can be added, edited and deleted around it."""

from pathlib import Path

import polars as pl
import pytest

from graphrag_assets.assets.checks import failed_blocking_checks
from graphrag_assets.assets.scan import scan
from graphrag_assets.embedded.reporter import REPORTER
from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.importer import import_index, remove
from graphrag_assets.extras.interop.source import read_source
from graphrag_assets.extras.purge import purge
from graphrag_assets.store import schema
from tests.interop.small_index import FIRST, PREFIX, SECOND, tables, write_small_index
from tests.openai_server import running

TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES)]


def contents(project):
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}


def test_every_row_is_taken_over_or_counted(import_small):
    found = import_small()
    assert found.rows_in == {name: frame.height for name, frame in tables().items()}
    assert found.rows_out == {
        "documents": 2,
        "text_units": 3,
        "entities": 6,
        "relationships": 5,
        "covariates": 2,
        "communities": 4,
        "community_reports": 3,
    }
    assert {f"{table} {what}": n for (table, what), n in found.repaired.items()} == {
        "text_units without text, left out": 1,
        "text_units prepended metadata removed": 1,
        "entities without a title, left out": 1,
        "entities with the same title as another, merged": 1,
        "entities references to missing text units, left out": 1,
        "relationships without a name at an endpoint, left out": 1,
        "relationships between an entity and itself, left out": 1,
        "relationships without a weight above 0, left out": 1,
        "relationships duplicates of a pair, in either direction, merged": 1,
        "covariates without a subject or a description, left out": 1,
        "covariates in missing text units, left out": 1,
        "covariates with an unknown status, set to SUSPECTED": 1,
        "community_reports of missing communities, left out": 1,
        "community_reports with citations of renumbered rows, updated": 1,
        "community_reports citations of missing rows, left out": 1,
    }


def test_merged_mentions_equal_the_imported_graph(small):
    entities = {title: row for title, *row in small.sql("SELECT title, type, description, frequency FROM entities")}
    assert entities == {
        "AGAMEMNON": ["SHIP", "The Agamemnon is a ship that laid the cable.", 1],
        "NIAGARA": ["SHIP", "The Niagara is a ship that met the Agamemnon.", 1],
        "VALENTIA": ["GEO", "Valentia is where the cable was landed.", 3],
        "GREAT EASTERN": ["SHIP", "The Great Eastern is a ship with a new cable.", 1],
        "DANIEL GOOCH": ["PERSON", "Daniel Gooch bought the Great Eastern. Gooch was an engineer.", 1],
        "CYRUS FIELD": ["UNKNOWN", "Cyrus Field wrote to Valentia.", 1],
        "PENGUIN": ["UNKNOWN", "", 1],
    }
    assert {(s, t): w for s, t, w in small.sql("SELECT source, target, weight FROM relationships")} == {
        ("AGAMEMNON", "NIAGARA"): 5.0,
        ("AGAMEMNON", "VALENTIA"): 1.0,
        ("GREAT EASTERN", "DANIEL GOOCH"): 2.0,
        ("GREAT EASTERN", "VALENTIA"): 4.0,
        ("VALENTIA", "CYRUS FIELD"): 1.0,
    }


def test_a_claim_of_an_unknown_status_is_suspected(small):
    assert small.sql("SELECT status FROM covariates ORDER BY 1") == [("SUSPECTED",), ("TRUE",)]


def test_text_units_have_their_place_in_their_document(small):
    units = small.sql(
        "SELECT t.text, d.text[t.start_char + 1:t.end_char] FROM text_units t "
        "JOIN documents d ON d.id = t.document_id ORDER BY t.human_readable_id"
    )
    assert [text for text, _ in units][:2] == [FIRST, SECOND]
    assert all(text == there for text, there in units)
    assert PREFIX not in "".join(text for text, _ in units)


def test_communities_and_reports_are_kept_with_their_numbers(small):
    rows = small.sql("SELECT community, level, parent, children, size FROM communities ORDER BY community")
    # Cyrus Field has joined Valentia; the penguin is by itself.
    assert rows == [(0, 0, -1, [2, 3], 4), (1, 0, -1, [], 2), (2, 1, 0, [], 2), (3, 1, 0, [], 2), (4, 0, -1, [], 1)]
    reports = dict(small.sql("SELECT community, model FROM community_reports"))
    assert reports == {0: "imported", 1: "imported", 2: "imported", 3: REPORTER}
    assert failed_blocking_checks(small.index) == []


def test_reports_cite_the_rows_they_meant(small):
    """Relationship 1 is merged into 0; entity 99 does not exist."""
    summaries = dict(small.sql("SELECT community, summary FROM community_reports"))
    assert summaries[0].endswith("[Data: Relationships (0, 2); Entities (0); Reports (2)]")
    assert summaries[1].endswith("[Data: Relationships (3), Claims (0)]")
    assert small.sql("SELECT count(*) FROM citations WHERE cited_id IS NULL") == [(0,)]


@pytest.mark.extended
def test_documents_are_added_and_deleted_around_the_import(imported):
    before = contents(imported)
    imported.index_all()
    assert contents(imported) == before
    imported.write("new.md", "Samuel Canning met the Penguin in London. Samuel Canning sold lamps to Robert Halpin.")
    imported.index_all()
    named = "SELECT DISTINCT m.batch FROM entity_mentions m JOIN entities e ON e.human_readable_id = m.entity_number "
    assert imported.sql(named + "WHERE e.title_key = 'penguin' ORDER BY 1") == [("imported-small",), ("new.md",)]
    # The penguin was by itself: the communities of the others have not changed, nor have their reports.
    reports = dict(imported.sql("SELECT community, model FROM community_reports"))
    assert [reports[number] for number in (0, 1, 2)] == ["imported"] * 3
    added = contents(imported)
    purge(imported.index)
    assert contents(imported) == added
    (imported.input / "new.md").unlink()
    imported.index_all()
    after = contents(imported)
    for name in ("documents", "text_units", "entity_mentions", "entities", "relationships", "covariates"):
        assert after[name] == before[name], name
    reports = {row["community"]: row["model"] for row in after["community_reports"]}
    assert [reports[number] for number in (0, 1, 2)] == ["imported"] * 3


@pytest.mark.extended
def test_removed_documents_are_deleted_with_everything_derived(imported):
    assert remove(imported.index, "imported-small", ["eastern.txt"]) == ["eastern.txt"]
    imported.index_all()
    titles = {title for (title,) in imported.sql("SELECT title FROM entities")}
    assert titles == {"AGAMEMNON", "NIAGARA", "VALENTIA", "CYRUS FIELD"}
    assert scan(imported.index).imported == ("imported-small",)
    imported.write("new.md", "Samuel Canning sold lamps to Robert Halpin in London. Robert Halpin paid Samuel Canning.")
    remove(imported.index, "imported-small")
    imported.index_all()
    alone = contents(imported)
    assert {row["batch"] for row in alone["documents"]} == {"new.md"}
    assert not [row for row in alone["entities"] if "AGAMEMNON" in row["title"]]
    assert {row["model"] for row in alone["community_reports"]} == {REPORTER}


@pytest.mark.extended
def test_names_in_use_are_rejected(imported, import_small):
    with pytest.raises(InputError, match=r"was imported from .*--remove imported-small"):
        import_small()
    imported.write("mine/a.md", "Cyrus Field met Robert Halpin.")
    imported.index_all()
    with pytest.raises(InputError, match="'mine' is a batch of the input folder"):
        import_small("mine")
    with pytest.raises(InputError, match=r"no imported batch 'mine'. Imported: imported-small"):
        remove(imported.index, "mine")
    with pytest.raises(InputError, match=r"no document 'x.txt'"):
        remove(imported.index, "imported-small", ["x.txt"])


@pytest.mark.extended
def test_a_second_import_finds_its_place_beside_the_first(imported, tmp_path):
    """The same index with other ships: its numbers are taken, so its rows get others, and its reports are renumbered."""
    other = tmp_path / "other"
    other.mkdir()
    for name, frame in tables().items():
        shifted = pl.col(pl.String).str.replace_all("Agamemnon|AGAMEMNON", "HECTOR").str.replace_all("NIAGARA", "HELEN")
        frame.with_columns(shifted).write_parquet(other / f"{name}.parquet")
    import_index(imported.index, other)
    imported.index_all()
    assert imported.sql("SELECT count(*) FROM documents") == [(4,)]
    assert failed_blocking_checks(imported.index) == []
    # The reports of the first import stay; the second's two ships are a community with their report.
    reports = imported.sql("SELECT summary FROM community_reports WHERE model = 'imported' AND title = 'Two ships'")
    numbers = dict(imported.sql("SELECT title, human_readable_id FROM entities"))
    assert sorted(reports) == sorted(
        (f"They met. [Data: Entities ({numbers[one]}, {numbers[other]})]",)
        for one, other in (("AGAMEMNON", "NIAGARA"), ("HECTOR", "HELEN"))
    )


@pytest.mark.extended
def test_no_model_is_called_but_for_missing_reports(project, import_small, monkeypatch):
    with running() as server:
        monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/test-chat")
        monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", server.url)
        monkeypatch.setenv("GRAPHRAG_CHAT_API_KEY", "sk-test")
        import_small()
        assert server.requests == []
        project.index_all()
        assert {request.task for request in server.chats} <= {"CommunityReport"}
        assert len(server.chats) <= 1  # that of Valentia, if a model is called for so small a community at all
        kept = project.sql("SELECT count(*) FROM community_reports WHERE model = 'imported'")
        assert kept == [(3,)]


# ---- indexes that cannot be read, or lack something


def test_an_index_of_an_older_version_is_refused_with_the_remedy(tmp_path):
    frames = tables()
    frames["text_units"] = frames["text_units"].with_columns(document_ids=pl.concat_list("document_id"))
    written(tmp_path / "2", frames)
    written(tmp_path / "1", {f"create_final_{name}": frame for name, frame in frames.items()})
    for folder, version in (("2", "2"), ("1", "0 or 1")):
        with pytest.raises(InputError, match=rf"is an index of GraphRAG {version}\. Migrate it to GraphRAG 3 with"):
            read_source(tmp_path / folder)


def test_what_is_no_index_is_refused(project, tmp_path):
    with pytest.raises(InputError, match=r"has no documents.parquet. Give the output folder of GraphRAG 3"):
        read_source(tmp_path)
    write_small_index(tmp_path / "output")
    assert read_source(tmp_path)["entities"].height == len(tables()["entities"])
    tables()["entities"].with_columns(title=pl.lit(None)).write_parquet(tmp_path / "output/entities.parquet")
    with pytest.raises(InputError, match=r"None of the 8 entities .* has a title and a text unit"):
        import_index(project.index, tmp_path)
    tables()["entities"].rename({"title": "name"}).write_parquet(tmp_path / "output/entities.parquet")
    with pytest.raises(InputError, match=r"entities.parquet has no column title. It has: 'human_readable_id'"):
        read_source(tmp_path)
    (tmp_path / "output/entities.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"entities.parquet cannot be read: .*Export or copy it again"):
        read_source(tmp_path)


def written(folder: Path, frames: dict[str, pl.DataFrame]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
    return folder
