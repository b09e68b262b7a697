"""Documents and answers are for the user who indexes: no other local user reads the index."""

import stat


def test_no_other_user_can_enter_the_folder_of_the_index(project):
    project.write("one/a.txt", "Cyrus Field met William Thomson in Valentia.")
    project.index_all()
    for folder in ("index", "index/publications"):
        assert stat.S_IMODE((project.root / folder).stat().st_mode) == 0o700, folder
