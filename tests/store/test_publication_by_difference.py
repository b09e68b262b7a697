"""A publication that began as a copy of the last one has the rows of one made from nothing."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_assets.extras.purge.purge import purge
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.knowledge_graph import knowledge_graph
from graphrag_assets.store import publication_content, publication_writer
from graphrag_assets.store.publication_files import kept_publications, publication_file
from tests.comparison import SENTENCES, assert_published, index_all
from tests.conftest import Project

GERMAN = (
    "Das Kabel wurde von Werner Siemens in Berlin geprüft. ",
    "Die Brüder Siemens gründeten eine Fabrik für Kabel in Woolwich. ",
    "Der Große Kurfürst lag im Hafen von Bremen. ",
)


@pytest.fixture(autouse=True)
def any_change_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication_content, "MAX_CHANGED", 2.0)
    monkeypatch.setattr(publication_writer, "MAX_GROWTH", 100.0)


def write(index: Index, name: str, text: str) -> None:
    file = Path(index.settings.input_folder) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def bases(index: Index) -> list[tuple[int, int]]:
    return index.working.read("SELECT number, base FROM publications ORDER BY number").rows()


def some(draw: random.Random, sentences: list[str] | tuple[str, ...], n: int) -> str:
    return " ".join(draw.choice(sentences) for _ in range(n))


def first_documents(start_with: Callable[..., Project], draw: random.Random) -> Index:
    """Documents of sentences drawn at random, and their index: a copy."""
    documents = {f"{n % 3}/{n}.md": f"# Part {n}\n\n{some(draw, SENTENCES, 12)}" for n in range(12)}
    return start_with({**documents, "0/german.md": some(draw, GERMAN, 6)}, chunk_size="60").index


def edit(index: Index, draw: random.Random) -> None:
    """One change that a person may make."""
    files = sorted(Path(index.settings.input_folder).rglob("*.md"))
    file = draw.choice(files)
    match draw.randrange(6):
        case 0:
            file.unlink()
        case 1:
            file.rename(file.with_name(f"renamed-{file.name}"))
        case 2:
            file.write_text(f"# {draw.choice(('Valentia', 'Costs', 'Newfoundland'))}\n\n{file.read_text()}")
        case 3:
            write(index, f"2/new-{draw.randrange(10**6)}.md", some(draw, SENTENCES, 5))
        case 4:
            file.write_text(file.read_text() + some(draw, GERMAN, 1))
        case _:
            file.write_text(file.read_text().replace(". ", f". {draw.choice(SENTENCES)} ", 1))


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_any_edits_are_published_as_from_nothing(start_with, seed: int) -> None:
    draw = random.Random(seed)
    index = first_documents(start_with, draw)
    for _ in range(4):
        for _ in range(draw.randint(1, 3)):
            edit(index, draw)
        index_all(index)
        assert_published(index)
    assert sum(base < number for number, base in bases(index)) >= 2  # of four


@pytest.mark.long
def test_a_decision_about_an_alias_is_published_as_from_nothing(start_with) -> None:
    index = first_documents(start_with, random.Random(1))
    with index.working.transaction() as connection:
        connection.execute(
            "INSERT INTO entity_aliases SELECT NULL, min(title_key), max(title_key), 'user', true "
            "FROM (SELECT title_key FROM entities ORDER BY frequency DESC LIMIT 2)"
        )
    index_all(index)
    assert_published(index)
    assert bases(index)[-1] == (2, 1)
    with index.working.transaction() as connection:
        connection.execute("DELETE FROM entity_aliases WHERE rule = 'user'")
    index_all(index)
    assert_published(index)


@pytest.mark.long
def test_a_language_that_comes_to_lead_and_a_first_date_are_published_as_from_nothing(start_with) -> None:
    draw = random.Random(2)
    index = first_documents(start_with, draw)
    for place in range(14):
        write(index, f"3/{place}.md", some(draw, GERMAN, 6))
    index_all(index)
    assert_published(index)
    assert bases(index)[-1] == (2, 2)  # words of texts without a language have other stems now
    write(index, "0/dated.md", f"---\ndate: 1866-07-27\n---\n{some(draw, SENTENCES, 3)}")
    index_all(index)
    assert_published(index)
    assert bases(index)[-1] == (3, 3)  # every row of a context has a date now


@pytest.mark.long
def test_a_document_published_before_its_text_units_had_numbers_is_completed(start_with) -> None:
    draw = random.Random(3)
    index = first_documents(start_with, draw)
    write(index, "4/late.md", some(draw, SENTENCES, 6))
    merged = knowledge_graph
    index_all(index, only=[])
    assert merged(index, index.models(), "test")
    index_all(index)
    assert_published(index)


@pytest.mark.long
def test_a_file_that_has_grown_by_half_is_made_from_nothing(start_with, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(4)
    index = first_documents(start_with, draw)
    write(index, "0/0.md", some(draw, SENTENCES, 4))
    index_all(index)
    assert bases(index)[-1] == (2, 1)
    monkeypatch.setattr(publication_writer, "MAX_GROWTH", 0.5)
    write(index, "0/0.md", some(draw, SENTENCES, 4))
    index_all(index)
    assert bases(index)[-1] == (3, 3)


@pytest.mark.long
def test_a_purge_leaves_no_file_that_began_as_a_copy_with_what_was_deleted(start_with) -> None:
    index = first_documents(start_with, random.Random(8))
    write(index, "0/0.md", "Zyxquorv was a secret cable.")
    index_all(index)
    write(index, "0/0.md", "Cyrus Field was there.")
    index_all(index)
    assert bases(index) == [(1, 1), (2, 1), (3, 1)]
    purge(index)
    assert bases(index)[-1] == (4, 4)
    assert kept_publications(index.database.parent) == [4]
    assert_published(index)


@pytest.mark.long
def test_a_large_change_is_made_from_nothing(start_with, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    index = first_documents(start_with, draw)
    monkeypatch.setattr(publication_content, "MAX_CHANGED", 0.2)
    for place in range(12):
        write(index, f"{place % 3}/{place}.md", some(draw, SENTENCES, 12))
    index_all(index)
    assert bases(index)[-1] == (2, 2)
    assert_published(index)


@pytest.mark.long
def test_what_follows_a_damaged_or_missing_publication_is_made_from_nothing(start_with) -> None:
    draw = random.Random(6)
    index = first_documents(start_with, draw)
    newest = publication_file(index.database.parent, 1)
    newest.write_bytes(newest.read_bytes()[:20_000])
    write(index, "0/0.md", some(draw, SENTENCES, 4))
    index_all(index)
    assert bases(index)[-1] == (2, 2)
    publication_file(index.database.parent, 2).unlink()
    write(index, "0/1.md", some(draw, SENTENCES, 4))
    index_all(index)
    assert_published(index)
    assert bases(index)[-1][0] == bases(index)[-1][1]


@pytest.mark.long
def test_rows_that_something_else_deleted_are_not_published(start_with) -> None:
    index = first_documents(start_with, random.Random(7))
    with index.working.transaction() as connection:
        connection.execute("DELETE FROM citations")
    publication = publication_writer.publish(index.working, index.database.parent)
    assert publication.rows["citations"] == 0
    assert bases(index)[-1] == (2, 2)
