"""After edits, a publication has the rows of one for which all texts are counted."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_assets.assets.index import Index
from tests.comparison import SENTENCES, assert_published, index_all
from tests.conftest import Project

GERMAN = (
    "Das Kabel wurde von Werner Siemens in Berlin geprüft. ",
    "Die Brüder Siemens gründeten eine Fabrik für Kabel in Woolwich. ",
    "Der Große Kurfürst lag im Hafen von Bremen. ",
)


def write(index: Index, name: str, text: str) -> None:
    file = Path(index.settings.input_folder) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


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
def test_any_edits_are_published(start_with, seed: int) -> None:
    draw = random.Random(seed)
    index = first_documents(start_with, draw)
    for _ in range(4):
        for _ in range(draw.randint(1, 3)):
            edit(index, draw)
        index_all(index)
        assert_published(index)


@pytest.mark.long
def test_a_language_that_comes_to_lead_and_a_first_date_are_published(start_with) -> None:
    draw = random.Random(2)
    index = first_documents(start_with, draw)
    for place in range(14):
        write(index, f"3/{place}.md", some(draw, GERMAN, 6))
    index_all(index)
    assert_published(index)  # words of texts without a language have other stems now
    write(index, "0/dated.md", f"---\ndate: 1866-07-27\n---\n{some(draw, SENTENCES, 3)}")
    index_all(index)
    assert_published(index)  # every row of a context has a date now
