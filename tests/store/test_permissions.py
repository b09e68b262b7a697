"""Documents and answers are for the user who indexes: no other local user reads the index."""

import stat

import pytest

from graphrag_assets.extras.explorer.page import write_page
from tests.assets.test_language_models import use
from tests.openai_server import running


@pytest.mark.extended
def test_no_other_user_can_read_a_file_of_the_index_or_enter_its_folders(project, monkeypatch):
    folders = ("index", "index/locks", "index/publications")
    for folder in folders[:-1]:
        (project.root / folder).mkdir(mode=0o755)  # they were there before
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    with running() as server:
        use(monkeypatch, server)
        project.index_all()
    write_page(project.root / "index")
    files = ("working.duckdb", "publications/graphrag-1.duckdb", "explorer.html", "ledger.sqlite", "input_digests.json")
    names = [*folders, *(f"index/{name}" for name in files)]
    modes = {name: stat.S_IMODE((project.root / name).stat().st_mode) for name in names}
    assert modes == {name: 0o700 if name in folders else 0o600 for name in names}
