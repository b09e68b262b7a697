"""`resolve` on real files: what it lists, what it refuses, and what `index` makes of decisions."""

import pytest

from graphrag_assets.cli.main import main
from tests.cli import run_command

TEXT = (
    "Cyrus Field met James Anderson in Valentia. James Andersen sailed with Cyrus Field. "
    "The Atlantic Telegraph Company hired James Anderson. The planet Mercury rose over Valentia."
)


@pytest.mark.long
def test_decisions_from_the_command_line(project):
    project.write("one/a.txt", TEXT)
    project.write("two/b.txt", "Justus Liebig weighed Mercury in Giessen.")
    run_command("index")
    listed = run_command("resolve")
    assert "james anderson" in listed
    assert "word" in listed
    candidates = "FROM entity_candidates WHERE title_key('James Andersen') IN (name_key, other_key)"
    assert project.sql(f"SELECT evidence, [name_key, other_key].list_sort() {candidates}") == [
        ("word", ["james andersen", "james anderson"])
    ]

    said = run_command("resolve", "accept", "James Andersen", "James Anderson")
    assert "james andersen is james anderson" in said
    assert "`graphrag-assets index` applies it" in said
    assert "1 indexed" not in run_command("index")
    assert project.sql("SELECT title FROM entities WHERE title LIKE 'James%'") == [("James Anderson",)]
    assert "james andersen is james anderson (person)" in run_command("resolve", "list", "--decided")

    assert "would be one thing" not in run_command("resolve", "reject", "James Andersen", "James Anderson")
    run_command("index")
    assert len(project.sql("SELECT title FROM entities WHERE title LIKE 'James%'")) == 2
    assert "james anders" not in run_command("resolve", "list", "James Andersen")

    run_command("resolve", "split", "Mercury", "--by", "documents", "--documents", "two/*", "--as", "Mercury (element)")
    run_command("index")
    assert project.sql("SELECT title FROM entities WHERE title LIKE 'Mercury%' ORDER BY 1") == [
        ("Mercury",),
        ("Mercury (element)",),
    ]
    assert "Taken back: mercury is split" in run_command("resolve", "undo", "Mercury")
    assert "Taken back: james andersen is not" in run_command("resolve", "undo")
    run_command("index")
    assert project.sql("SELECT title FROM entities WHERE title LIKE 'Mercury%'") == [("Mercury",)]

    assert "Nothing in the index is called 'Jams Anderson'. Similar: james ander" in run_command(
        "resolve", "accept", "Jams Anderson", "Cyrus Field", status=1
    )
    run_command("resolve", "accept", "James Andersen", "James Anderson")
    assert "stands for 'james anderson' already" in run_command(
        "resolve", "accept", "James Andersen", "Cyrus Field", status=1
    )
    assert "--documents and --as go together" in run_command(
        "resolve", "split", "Mercury", "--by", "documents", "--as", "x", status=1
    )
    assert "There is no such decision" in run_command("resolve", "undo", "Valentia", status=1)
    assert "No chat model is set to judge" in run_command("resolve", "judge", status=1)


@pytest.mark.parametrize("command", ["list", "judge"])
def test_without_an_index_there_is_nothing_to_decide(project, command):
    assert "Run `graphrag-assets index`" in run_command("resolve", command, status=1)


def test_there_are_at_most_15_commands():
    assert len(main.list_commands(None)) <= 15
