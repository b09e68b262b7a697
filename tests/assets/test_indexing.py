"""Indexing by Dagster: from real files to published tables."""

import dagster as dg
import pytest

from graphrag_assets.store import schema

CABLE = """# The cable

Captain James Anderson commanded the Great Eastern. The Great Eastern sailed from Valentia in July 1866 with Cyrus
Field and William Thomson on board. On 27 July 1866 the Great Eastern reached Heart's Content in Newfoundland.

William Thomson invented the mirror galvanometer. The mirror galvanometer showed a spot of light. At Valentia the
mirror galvanometer read the signals from Newfoundland.
"""
MONEY = """The Atlantic Telegraph Company was founded by Cyrus Field and John Brett in 1856 with a capital of £350,000.
John Brett had laid a cable under the English Channel in 1851. Cyrus Field came from New York.
"""
CSV = 'id,title,text,author\n1,Dover,"John Brett met Cyrus Field in London in 1854.",Ann\n2,Cork,"Queenstown lies near Cork.",Ben\n'
INDEX_TABLES = [table.name for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES)]


DOCUMENTS = {"one/cable.md": CABLE, "one/money.txt": MONEY, "two/letters.csv": CSV}


@pytest.fixture
def cables(project):
    for path, text in DOCUMENTS.items():
        project.write(path, text)
    return project


@pytest.fixture
def indexed(start_with):
    """The same, indexed."""
    return start_with(DOCUMENTS)


def contents(project, *but):
    return {
        name: project.index.working.read(f"SELECT * FROM {name} ORDER BY ALL").to_dicts()
        for name in INDEX_TABLES
        if name not in but
    }


def test_the_published_columns_include_all_of_graphrag_3(indexed):
    graphrag = {
        "documents": "id human_readable_id title text text_unit_ids creation_date raw_data",
        "text_units": "id human_readable_id text n_tokens document_id entity_ids relationship_ids covariate_ids",
        "entities": "id human_readable_id title type description text_unit_ids frequency degree",
        "relationships": "id human_readable_id source target description weight combined_degree text_unit_ids",
        "communities": "id human_readable_id community level parent children title entity_ids relationship_ids "
        "text_unit_ids period size",
        "community_reports": "id human_readable_id community level parent children title summary full_content rank "
        "rating_explanation findings full_content_json period size",
        "covariates": "id human_readable_id covariate_type type description subject_id object_id status start_date "
        "end_date source_text text_unit_id",
    }
    for table, columns in graphrag.items():
        found = {
            row[0] for row in indexed.sql(f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{table}'")
        }
        assert set(columns.split()) <= found, table


def test_every_span_gives_the_text_of_its_unit_and_every_claim_quotes_its_unit(indexed):
    wrong = "SELECT count(*) FROM text_units t JOIN documents d ON d.id = t.document_id WHERE t.text <> d.text[start_char+1:end_char]"
    assert indexed.sql(wrong) == [(0,)]
    claims = indexed.sql(
        "SELECT count(*), count(*) FILTER (contains(t.text, c.source_text)) FROM covariates c JOIN text_units t ON t.id = c.text_unit_id"
    )
    assert claims[0][0] == claims[0][1] > 0


@pytest.mark.extended
def test_batches_in_another_order_give_the_same_rows(indexed, tmp_path, monkeypatch):
    first = contents(indexed)
    monkeypatch.setenv("GRAPHRAG_INPUT", str(indexed.input))
    monkeypatch.setenv("GRAPHRAG_DATA", str(tmp_path / "other"))
    indexed.root = tmp_path / "other"
    indexed.index_all("two", "one")
    assert contents(indexed) == first


def test_a_unit_whose_extraction_fails_is_a_row_of_index_errors_and_is_retried_alone(cables, monkeypatch):
    from graphrag_assets.embedded import extractor

    real = extractor.extract_unit

    def broken(text, *context):
        if "galvanometer" in text:
            raise ValueError("no galvanometers today")
        return real(text, *context)

    monkeypatch.setattr(extractor, "extract_unit", broken)
    cables.register()
    cables.run_batch("one")
    errors = cables.index.working.read("SELECT stage, error FROM index_errors").rows()
    assert errors == [("extract", "ValueError: no galvanometers today")]
    retried = []
    monkeypatch.setattr(
        extractor, "extract_unit", lambda text, *context: (retried.append(text), real(text, *context))[1]
    )
    cables.run_batch("one")
    assert len(retried) == 1
    assert cables.index.working.read("SELECT count(*) FROM index_errors").item() == 0


@pytest.mark.parametrize("asset", ["entities", "embeddings"])
def test_a_single_asset_can_be_materialized(indexed, asset):
    events = indexed.run_global(asset_selection=[dg.AssetKey(asset)]).get_asset_materialization_events()
    assert {event.asset_key.to_user_string() for event in events} == {asset}


def test_documents_with_the_same_text_are_two_documents_with_text_units_of_their_own(start_with):
    project = start_with({f"a/{name}.txt": "The Niagara met the Agamemnon in mid-ocean." for name in ("one", "two")})
    assert project.sql("SELECT count(*), count(DISTINCT document_id), count(DISTINCT id) FROM text_units") == [
        (2, 2, 2)
    ]
