"""Documents and answers are for the user who indexes: no other local user reads the index."""

import stat

import pytest

from graphrag_assets.extras.explorer.page import write_page
from tests.defs.test_language_models import use
from tests.openai_server import running


@pytest.mark.extended
def test_no_other_user_can_read_a_file_of_the_index_where_the_folder_was_there_before(project, monkeypatch):
    (project.root / "index").mkdir(mode=0o755)
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    with running() as server:
        use(monkeypatch, server)
        project.index_all()
    write_page(project.root / "index")
    names = ("working.duckdb", "publications/graphrag-1.duckdb", "explorer.html", "ledger.sqlite", "input_digests.json")
    modes = {name: stat.S_IMODE((project.root / "index" / name).stat().st_mode) for name in names}
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.extended
def test_folders_that_were_open_to_others_are_closed_while_the_index_is_written(project):
    folders = ["index", "index/publications", "index/drafts", "index/locks"]
    for folder in folders:
        (project.root / folder).mkdir(mode=0o755)
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    project.index_all()
    assert {folder: stat.S_IMODE((project.root / folder).stat().st_mode) for folder in folders} == dict.fromkeys(
        folders, 448
    )


@pytest.mark.extended
def test_no_other_user_can_enter_the_folder_of_the_index(project):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    project.index_all()
    for folder in ("index", "index/publications"):
        assert stat.S_IMODE((project.root / folder).stat().st_mode) == 0o700, folder
