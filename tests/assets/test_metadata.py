"""What the UI shows of an asset: numbers it can plot, pictures, tables, and where the code is."""

import re
from urllib.parse import unquote

import dagster as dg

from graphrag_assets.assets.index_names import ASSETS
from graphrag_assets.store import schema
from tests.conftest import Project

TABLES = {table.name: table for table in (*schema.BATCH_TABLES, *schema.GLOBAL_TABLES) if table.name in ASSETS}
TEXT = "Captain James Anderson commanded the Great Eastern. Cyrus Field sailed with Samuel Canning to Newfoundland."


def metadata_of(project: Project, asset: str) -> dict[str, dg.MetadataValue]:
    event = project.instance.get_latest_materialization_event(dg.AssetKey(asset))
    return dict(event.asset_materialization.metadata)


def test_previews_begin_with_titles_and_have_no_hashes(sample_index):
    preview = metadata_of(sample_index, "entities")["preview"].value
    assert preview.startswith("| title | type | degree | frequency |")
    for asset in (*TABLES, "publication"):
        for name, value in metadata_of(sample_index, asset).items():
            if isinstance(value, dg.MarkdownMetadataValue) and name != "map":
                assert not re.search(r"\b[0-9a-f]{32}\b|\[\x27|\{\x27", value.value), (asset, name)


def test_a_publication_says_what_changed(project):
    project.write("one/a.txt", TEXT)
    project.write("two/b.txt", "Hugo Brand wrote to Pia Lund from Hamburg.")
    project.run_all()
    assert metadata_of(project, "publication")["summary"].value.startswith("Published: publication 1, ")
    project.write("two/b.txt", "Hugo Brand wrote to Nora Quist from Bergen.")
    project.write("two/broken.docx", b"PK\x03\x04 no document")
    project.run_all()
    first, documents, *_ = metadata_of(project, "publication")["summary"].value.splitlines()
    assert first.startswith("Published: publication 2, ")
    assert documents == "- documents: 1 edited, 1 unchanged"
    logs = [
        entry.user_message for run in project.instance.get_runs() for entry in project.instance.all_logs(run.run_id)
    ]
    assert any(log.startswith("Skipped in batch two: two/broken.docx: not readable as docx") for log in logs)


def test_the_map_names_entities_of_the_highest_degree(sample_index):
    picture = metadata_of(sample_index, "publication")["map"].value
    assert picture.startswith("![The map of the graph](data:image/svg+xml,")
    assert "William%20Thomson" in picture


def test_what_documents_say_is_in_no_event(sample_index):
    texts = [text for (text,) in sample_index.sql("SELECT text FROM text_units")]
    sentences = [sentence for text in texts for sentence in text.split(". ")[1:3] if len(sentence) > 60]
    assert len(sentences) > 50
    for run in sample_index.instance.get_runs():
        log = unquote(str(sample_index.instance.all_logs(run.run_id)))
        assert [sentence for sentence in sentences if sentence in log] == []


def test_skipped_and_failed_units_are_numbers(project, monkeypatch):
    from graphrag_assets.embedded import extractor

    def fails(*unit):
        raise RuntimeError("no luck")

    monkeypatch.setattr(extractor, "extract_unit", fails)
    project.write("one & two/a.txt", TEXT)
    project.write("one & two/broken.txt", b"\xff\xfe\xfa\x00\xd8")
    project.register()
    project.run_batch("one & two")
    assert metadata_of(project, "documents")["problems"].value == 1
    assert metadata_of(project, "entity_mentions")["failed_text_units"].value == 1
