"""Bad input files: each has a row in index_errors or works; the rest is indexed."""

import os

import pytest

GOOD = "Cyrus Field met William Thomson in London. William Thomson sailed in the Agamemnon.\n"


MESS = {
    "mess/good.txt": GOOD,
    "mess/empty.txt": "",
    "mess/binary.txt": bytes(range(256)) * 20,
    "mess/cut.txt": "Zoë sailed to São Paulo.".encode("utf-16")[:-1],
    "mess/long.txt": "word " * 2_500_000,
    "mess/lines.jsonl": '{"text": "Samuel Canning met Robert Halpin."}\n{"text": broken\n{"text": "Ann met Bob."}\n',
    "mess/twin-1.txt": "The Niagara met the Agamemnon in mid-ocean.",
    "mess/twin-2.txt": "The Niagara met the Agamemnon in mid-ocean.",
    "mess/special.md": "The marker <|endoftext|> stands in this text. William Thomson saw <|endoftext|>.",
    "mess/picture.xyz": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "mess/name 100% '; DROP TABLE x; -- 🚢.txt": "Robert'); DROP TABLE documents;-- met “Zoë” O'Neil 🚢.",
    "other/good.txt": GOOD,
}


@pytest.fixture
def mess(start_with):
    return start_with(MESS)


@pytest.mark.extended
def test_every_bad_file_has_its_error_and_everything_else_is_indexed(mess):
    errors = dict(mess.sql("SELECT source, error FROM index_errors"))
    assert set(errors) == {
        f"mess/{name}" for name in ("empty.txt", "binary.txt", "cut.txt", "long.txt", "lines.jsonl", "picture.xyz")
    }
    assert "UTF-16" in errors["mess/cut.txt"]
    assert "binary" in errors["mess/binary.txt"]
    assert mess.sql("SELECT row_number FROM index_errors WHERE source = 'mess/lines.jsonl'") == [(2,)]
    assert mess.sql("SELECT count(*) FROM index_errors WHERE coalesce(hint, '') = ''") == [(0,)]
    sources = [row[0] for row in mess.sql("SELECT source FROM documents ORDER BY source")]
    assert sources == [
        "mess/good.txt",
        "mess/lines.jsonl",
        "mess/lines.jsonl",
        "mess/name 100% '; DROP TABLE x; -- 🚢.txt",
        "mess/special.md",
        "mess/twin-1.txt",
        "mess/twin-2.txt",
        "other/good.txt",
    ]


def test_documents_with_the_same_text_are_two_documents_with_separate_units(mess):
    twins = mess.sql(
        "SELECT count(DISTINCT d.id), count(DISTINCT t.id) FROM documents d JOIN text_units t ON t.document_id = d.id WHERE d.source LIKE '%twin%'"
    )
    assert twins == [(2, 2)]


@pytest.mark.long
def test_repaired_file_leaves_index_errors_and_the_others_keep_their_first_seen(mess):
    mess.index_all()
    seen = "SELECT source, first_seen FROM index_errors ORDER BY source"
    before = dict(mess.index.working.read(seen).iter_rows())
    mess.write("mess/cut.txt", "Zoë sailed to São Paulo.")
    mess.index_all("mess")
    after = dict(mess.index.working.read(seen).iter_rows())
    assert set(before) - set(after) == {"mess/cut.txt"}
    assert all(before[source] == at for source, at in after.items())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_an_error_row(project):
    project.write("one/good.txt", GOOD)
    project.write("one/secret.txt", GOOD)
    (project.input / "one" / "secret.txt").chmod(0)
    project.index_all()
    assert project.sql("SELECT source FROM index_errors") == [("one/secret.txt",)]


@pytest.mark.extended
def test_an_empty_input_folder_publishes_an_empty_index(project):
    project.index_all()
    assert project.sql("SELECT count(*) FROM entities") == [(0,)]


@pytest.mark.extended
def test_a_batch_whose_name_cannot_be_a_partition_key_is_reported(project):
    project.write("good.txt", GOOD)
    project.write("bad...name.txt", GOOD)
    project.index_all()
    assert project.sql("SELECT stage, source FROM index_errors") == [("scan", "bad...name.txt")]
    assert project.sql("SELECT source FROM documents") == [("good.txt",)]


@pytest.mark.long
def test_missing_input_folder_is_an_error_and_deletes_nothing(start_with):
    project = start_with({"good.txt": GOOD})
    project.input.rename(project.root / "moved")
    project.run("update_index", succeed=False)
    project.run_batch("good.txt", succeed=False)
    assert project.index.working.read("SELECT count(*) FROM documents").item() == 1
