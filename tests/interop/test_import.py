"""An imported index answers immediately; documents can be added, edited and deleted around it."""

import contextlib
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest

from graphrag_assets.embedded import embedded_models
from graphrag_assets.errors import InputError
from graphrag_assets.extras.interop.imported_batches import hand_over, remove
from graphrag_assets.extras.interop.importer import import_index
from graphrag_assets.extras.purge.purge import purge
from graphrag_assets.indexing.checks import failed_blocking_checks
from graphrag_assets.indexing.index_batch import commit_extracted, extract_batch
from graphrag_assets.indexing.scan import scan
from graphrag_assets.query import GraphRAG
from graphrag_assets.store import schema
from graphrag_assets.store.locks import batch_lock
from tests.contention import waiting_for
from tests.interop.small_index import FIRST, PREFIX, RELATIONSHIPS, SECOND, tables
from tests.openai_server import running

TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES) if table.name != "community_history"]


def contents(project):
    return {name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts() for name in TABLES}


def test_every_row_is_written_or_counted(small):
    counts = {(step, table, what): n for step, table, what, n in small.counts.iter_rows()}
    assert {table: n for (step, table, _), n in counts.items() if step == "read" and n} == {
        name: frame.height for name, frame in tables().items()
    }
    assert {table: n for (step, table, _), n in counts.items() if step == "written"} == {
        "documents": 2,
        "text_units": 3,
        "entities": 7,
        "relationships": 5,
        "covariates": 2,
        "communities": 5,
        "community_reports": 4,
    }
    assert {f"{table} {what}": n for (step, table, what), n in counts.items() if step == "repaired"} == {
        "text_units without text, left out": 1,
        "text_units prepended metadata removed": 1,
        "entities without a title, left out": 1,
        "entities with the same title as another, merged": 1,
        "entities missing endpoints of relationships, added": 1,
        "entities without a type, of type UNKNOWN": 1,
        "entities references to missing text units, left out": 1,
        "entities without a community, joined to that of their strongest relationship": 1,
        "relationships without a name at an endpoint, left out": 1,
        "relationships between an entity and itself, left out": 1,
        "relationships without a weight above 0, left out": 1,
        "relationships duplicates of a pair, in either direction, merged": 1,
        "covariates without a subject or a description, left out": 1,
        "covariates in missing text units, left out": 1,
        "covariates with an unknown status, set to SUSPECTED": 1,
        "communities added for entities without a community": 1,
        "community_reports of missing communities, left out": 1,
        "community_reports with citations of renumbered rows, updated": 1,
        "community_reports citations of missing rows, left out": 1,
        "community_reports written by the embedded default because they were missing": 1,
    }
    published = small.sql("SELECT step, table_name, what, n FROM operations.import_counts ORDER BY ALL")
    assert published == sorted(small.counts.rows())


def test_merged_mentions_equal_the_imported_graph(small):
    entities = {title: row for title, *row in small.sql("SELECT title, type, description, frequency FROM entities")}
    assert entities["AGAMEMNON"] == ["SHIP", "The Agamemnon is a ship that laid the cable.", 1]
    assert entities["VALENTIA"] == ["GEO", "Valentia is where the cable was landed.", 3]
    assert entities["DANIEL GOOCH"] == ["PERSON", "Daniel Gooch bought the Great Eastern. Gooch was an engineer.", 1]
    assert entities["CYRUS FIELD"] == ["UNKNOWN", "Cyrus Field wrote to Valentia.", 1]
    weights = {(s, t): w for s, t, w in small.sql("SELECT source, target, weight FROM relationships")}
    assert weights == {
        ("AGAMEMNON", "NIAGARA"): 5.0,
        ("AGAMEMNON", "VALENTIA"): 1.0,
        ("GREAT EASTERN", "DANIEL GOOCH"): 2.0,
        ("GREAT EASTERN", "VALENTIA"): 4.0,
        ("VALENTIA", "CYRUS FIELD"): 1.0,
    }


def test_text_units_have_their_place_in_their_document(small):
    units = small.sql(
        "SELECT t.id, t.text, d.text[t.start_char + 1:t.end_char] FROM text_units t "
        "JOIN documents d ON d.id = t.document_id ORDER BY t.id"
    )
    assert [(unit, text) for unit, text, _ in units][:2] == [("u0", FIRST), ("u1", SECOND)]
    assert all(text == there for _, text, there in units)
    assert PREFIX not in "".join(text for _, text, _ in units)


def test_communities_and_reports_are_kept_with_their_numbers(small):
    rows = small.sql("SELECT community, level, parent, children, size FROM communities ORDER BY community")
    # Cyrus Field has joined Valentia; the penguin is by itself.
    assert rows == [(0, 0, -1, [2, 3], 4), (1, 0, -1, [], 2), (2, 1, 0, [], 2), (3, 1, 0, [], 2), (4, 0, -1, [], 1)]
    reports = dict(small.sql("SELECT community, model FROM community_reports"))
    assert reports == {0: "imported", 1: "imported", 2: "imported", 3: "embedded/extractive-2"}


def test_reports_cite_the_rows_they_meant(small):
    """Relationship 1 is merged into 0; entity 99 does not exist."""
    ((summary,),) = small.sql("SELECT summary FROM community_reports WHERE community = 0")
    assert summary.endswith("[Data: Relationships (0, 2); Entities (0); Reports (2)]")
    ((other,),) = small.sql("SELECT summary FROM community_reports WHERE community = 1")
    assert other.endswith("[Data: Relationships (3), Claims (0)]")
    assert small.sql("SELECT count(*) FROM citations WHERE cited_id IS NULL") == [(0,)]


def test_all_blocking_checks_pass(small):
    assert failed_blocking_checks(small.index) == []


@pytest.mark.parametrize("method", ["local", "global_", "drift", "basic"])
def test_questions_are_answered_from_the_import(small, method):
    answer = getattr(GraphRAG(small.root / "index"), method)("Who bought the Great Eastern?")
    assert "Gooch" in answer.answer
    assert answer.citations


@pytest.mark.long
def test_a_run_after_the_import_changes_nothing(imported):
    before = contents(imported)
    imported.run("update_index")
    assert contents(imported) == before
    assert imported.index.working.read("SELECT max(number) FROM publications").item() == 1


@pytest.mark.long
def test_documents_are_added_around_the_import(imported):
    imported.write(
        "new/lamps.md", "Samuel Canning met the Penguin in London. Samuel Canning sold lamps to Robert Halpin."
    )
    imported.index_all()
    assert imported.sql("SELECT batch, language, count(*) FROM documents GROUP BY ALL ORDER BY 1") == [
        ("imported-small", "en", 2),
        ("new", "en", 1),
    ]
    assert imported.sql("SELECT DISTINCT extractor FROM text_units WHERE batch LIKE 'imported%'") == [("imported",)]
    named = "SELECT DISTINCT m.batch FROM entity_mentions m JOIN entities e ON e.human_readable_id = m.entity_number "
    assert imported.sql(named + "WHERE e.title_key = 'penguin' ORDER BY 1") == [("imported-small",), ("new",)]
    # The penguin was by itself: the communities of the others have not changed, nor have their reports.
    reports = dict(imported.sql("SELECT community, model FROM community_reports"))
    assert [reports[number] for number in (0, 1, 2)] == ["imported"] * 3


@pytest.mark.extended
def test_report_is_rewritten_when_its_community_changes(imported):
    imported.write("new.md", "Daniel Gooch commanded the Great Eastern. Daniel Gooch sold the Great Eastern in London.")
    imported.index_all()
    found = imported.sql(
        "SELECT model FROM community_reports r JOIN communities c USING (community) WHERE list_contains("
        "c.entity_ids, (SELECT id FROM entities WHERE title_key = 'great eastern')) AND r.level = 0"
    )
    assert found == [("embedded/extractive-2",)]


@pytest.mark.long
def test_adding_and_deleting_a_document_leaves_the_import_unchanged(imported):
    before = contents(imported)
    imported.write("new.md", "Samuel Canning met the Penguin in London. Robert Halpin met Samuel Canning.")
    imported.index_all()
    assert contents(imported) != before
    (imported.input / "new.md").unlink()
    imported.index_all()
    after = contents(imported)
    for name in ("documents", "text_units", "entity_mentions", "entities", "relationships", "covariates"):
        assert after[name] == before[name], name
    reports = {row["community"]: row["model"] for row in after["community_reports"]}
    assert [reports[number] for number in (0, 1, 2)] == ["imported"] * 3


@pytest.mark.long
def test_removed_document_of_an_import_is_deleted_with_everything_derived(imported):
    assert remove(imported.index, "imported-small", ["eastern.txt"]) == ["eastern.txt"]
    imported.index_all()
    titles = {title for (title,) in imported.sql("SELECT title FROM entities")}
    assert titles == {"AGAMEMNON", "NIAGARA", "VALENTIA", "CYRUS FIELD"}
    assert imported.sql("SELECT title FROM documents") == [("agamemnon.txt",)]
    assert scan(imported.index).imported == ("imported-small",)


@pytest.mark.long
def test_removed_import_is_deleted_from_every_table(imported):
    imported.write("new.md", "Samuel Canning sold lamps to Robert Halpin in London. Robert Halpin paid Samuel Canning.")
    remove(imported.index, "imported-small")
    imported.index_all()
    alone = contents(imported)
    assert {row["batch"] for row in alone["documents"]} == {"new.md"}
    assert not [row for row in alone["entities"] if "AGAMEMNON" in row["title"]]
    assert {row["model"] for row in alone["community_reports"]} == {"embedded/extractive-2"}
    for table in ("imports", "import_counts", "imported_ids"):
        assert imported.sql(f"SELECT count(*) FROM operations.{table}") == [(0,)]


@pytest.mark.long
def test_document_handed_over_becomes_an_input_file(imported):
    assert hand_over(imported.index, "imported-small", ["agamemnon.txt"]) == ["small/agamemnon.txt"]
    assert (imported.input / "small" / "agamemnon.txt").read_text() == FIRST + SECOND
    imported.index_all()
    rows = imported.sql("SELECT batch, source FROM documents ORDER BY batch")
    assert rows == [("imported-small", "imported-small/eastern.txt"), ("small", "small/agamemnon.txt")]
    assert imported.sql("SELECT DISTINCT extractor FROM text_units WHERE batch = 'small'") != [("imported",)]


def test_hand_over_does_not_overwrite_an_existing_file(imported):
    imported.write("small/agamemnon.txt", "Mine.")
    with pytest.raises(InputError, match=r"small/agamemnon.txt already exists in the input folder"):
        hand_over(imported.index, "imported-small")
    assert (imported.input / "small" / "agamemnon.txt").read_text() == "Mine."
    assert imported.index.working.read("SELECT count(*) FROM documents").item() == 2


def test_hand_over_accepts_a_file_with_the_same_content(imported):
    """An interrupted hand-over can be repeated."""
    imported.write("small/agamemnon.txt", FIRST + SECOND)
    assert hand_over(imported.index, "imported-small") == ["small/agamemnon.txt", "small/eastern.txt"]
    assert (imported.input / "small" / "agamemnon.txt").read_text() == FIRST + SECOND
    assert imported.index.working.read("SELECT count(*) FROM documents").item() == 0


@pytest.mark.long
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


def test_import_is_refused_when_a_batch_of_its_name_is_committed_meanwhile(project, import_small):
    project.write("mine/a.md", "Cyrus Field met Robert Halpin.")
    index = project.index
    files = list(index.input.files("mine"))
    extracted = extract_batch(index, "mine", index.models("mine"), files)
    with contextlib.ExitStack() as stack, index.working.exclusive(batch_lock("mine")):
        importing = stack.enter_context(waiting_for(batch_lock("mine"), lambda: import_small("mine")))
        commit_extracted(index, "mine", extracted, files, "run")
    with pytest.raises(InputError, match="'mine' is a batch of the input folder"):
        importing.result()
    assert index.working.read("SELECT count(*) FROM imports").item() == 0


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "imported-..", ".hidden", "a\\b", " ", "imported-", "a\nb"])
def test_names_that_are_not_valid_folder_names_are_rejected(project, import_small, name):
    with pytest.raises(InputError, match=r"cannot be the name of a batch.*--name"):
        import_small(name)


@pytest.mark.long
def test_an_entry_of_the_input_folder_with_an_imports_name_does_not_replace_it(imported):
    imported.write("imported-small/a.md", "Cyrus Field met Robert Halpin.")
    imported.run("update_index", succeed=False)
    assert imported.sql("SELECT count(*) FROM documents") == [(2,)]


@pytest.mark.long
def test_a_second_import_finds_its_place_beside_the_first(imported, tmp_path):
    """The same index twice: ids and numbers are taken, so its rows get others, and its reports are renumbered."""
    other = tmp_path / "other"
    other.mkdir()
    for name, frame in tables().items():
        shifted = pl.col(pl.String).str.replace_all("Agamemnon|AGAMEMNON", "HECTOR").str.replace_all("NIAGARA", "HELEN")
        frame.with_columns(shifted).write_parquet(other / f"{name}.parquet")
    second = import_index(imported.index, other)
    counts = {what: n for step, _, what, n in second.counts.iter_rows() if step == "repaired"}
    assert counts["id already used by another batch, replaced by a new one"] > 0
    assert imported.sql("SELECT count(*) FROM documents") == [(4,)]
    titles = {title for (title,) in imported.sql("SELECT title FROM entities")}
    assert {"HECTOR", "HELEN", "AGAMEMNON", "VALENTIA"} <= titles
    # The reports of the first import stay; the second's two ships are a community with their report.
    found = imported.sql(
        "SELECT r.summary, r.model FROM community_reports r JOIN communities c USING (community) "
        "WHERE list_sort([e.title FOR e IN (SELECT list(e) FROM entities e WHERE list_contains(c.entity_ids, e.id))]) "
        "= ['HECTOR', 'HELEN']"
    )
    hector, helen = (
        number
        for (number,) in imported.sql(
            "SELECT human_readable_id FROM entities WHERE title IN ('HECTOR', 'HELEN') ORDER BY title"
        )
    )
    assert found == [(f"They met. [Data: Entities ({hector}, {helen})]", "imported")]


@pytest.mark.long
def test_import_calls_no_model_and_the_next_run_replaces_only_its_stand_ins(project, import_small, monkeypatch):
    with running() as server:
        monkeypatch.setenv("GRAPHRAG_CHAT_MODEL", "openai/test-chat")
        monkeypatch.setenv("GRAPHRAG_CHAT_BASE_URL", server.url)
        monkeypatch.setenv("GRAPHRAG_CHAT_API_KEY", "sk-test")
        import_small()
        assert server.requests == []
        before = project.sql(
            "SELECT community, full_content FROM community_reports WHERE model = 'imported' ORDER BY 1"
        )
        assert len(before) == 3
        project.index_all()
        assert {request.task for request in server.chats} <= {"CommunityReport"}
        assert (
            len(server.chats) <= 2
        )  # those of Valentia and of the penguin, if a model is called for such small communities at all
        kept = project.sql("SELECT community, full_content FROM community_reports WHERE model = 'imported' ORDER BY 1")
        assert kept == before


@pytest.mark.long
def test_vectors_of_the_configured_model_are_imported(project, import_small, monkeypatch, tmp_path):
    folder = project.root / "small"
    folder.mkdir()
    texts = {
        "text_unit_text": [("u1", [1.0, 0.0]), ("u2", [0.0, 2.0])],
        "entity_description": [(row, [3.0, 4.0]) for row in tables()["entities"]["id"].to_list()],
        "community_full_content": [(f"report-{n}", [1.0, 1.0]) for n in (0, 1, 2)] + [("report-9", [1.0, 1.0, 1.0])],
    }
    for name, rows in texts.items():
        pl.DataFrame(rows, schema=["id", "vector"], orient="row").write_parquet(folder / f"vectors.{name}.parquet")
    vectors_of_mine = {"embedding_model": "their-model", "embed": lambda texts: np.array([[1.0, 0.0]] * len(texts))}
    monkeypatch.setattr(
        "graphrag_assets.indexing.models.embedded_models",
        lambda given: replace(embedded_models(given), **vectors_of_mine),
    )
    imported = import_small(vectors_of="their-model")
    vectors = dict(project.index.working.read("SELECT id, vector FROM embeddings").iter_rows())
    assert vectors["u2"] == [0.0, 1.0]
    (valentia,) = project.index.working.read("SELECT id FROM entities WHERE title = 'VALENTIA'")["id"]
    assert vectors[valentia] == pytest.approx([0.6, 0.8])
    repaired = imported.counts.filter(pl.col("table_name") == "embeddings", pl.col("step") == "repaired")
    # Daniel Gooch, twice, and the nameless are not as they were, one entity is alone; report 0 is renumbered.
    assert dict(repaired.select("what", "n").iter_rows()) == {
        "of changed texts or of entities without a relationship, left out": 5,
        "with another length than the index's vectors, left out": 1,
    }


@pytest.mark.long
def test_purge_leaves_an_import_alone(imported):
    imported.write("new.md", "Samuel Canning sold lamps to Robert Halpin.")
    imported.index_all()
    before = contents(imported)
    purge(imported.index)
    assert contents(imported) == before
    assert imported.index.working.read("SELECT batch FROM batch_state ORDER BY 1")["batch"].to_list() == [
        "imported-small",
        "new.md",
    ]


def test_import_tables_record_the_origin(small):
    with duckdb.connect(str(small.root / "index" / "graphrag.duckdb"), read_only=True) as connection:
        batch, origin, generation = connection.execute(
            "SELECT batch, origin, generation FROM operations.imports"
        ).fetchone()
    assert (batch, generation) == ("imported-small", "GraphRAG 3")
    assert origin == str(small.root / "small")
    assert len(RELATIONSHIPS) == 9
