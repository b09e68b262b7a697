"""The passage graph: subjects and names of text units."""

import json
from collections import defaultdict

import duckdb
import pytest

from graphrag_assets.store.passage_graph import DEFINITION, MAX_HEADED
from tests.conftest import indexed

DEFINED = [
    " is an engineer.",
    " was the first ship.",
    " (born 4 May 1901) was a singer",
    ", also known as the Sparrow, was a singer",
    " also is one of the isles",
    " war eine deutsche Stadt",
    " est un écrivain",
    " fue una reina",
    " (1799—1837) — русский поэт",
    " является городом",
    " är en stad",
]
NOT_DEFINED = [
    " said that the cable was a success",
    " left. The ship was a wreck.",
    ", who sailed in May, and whose brother was a doctor, died",
    " and Cyrus Field were there",
    "'s house was the oldest",
    "\nThe ship is a wreck",
    " is dead",
    "",
]


@pytest.mark.parametrize("following", [*DEFINED, *NOT_DEFINED])
def test_definition_is_distinguished_from_other_sentences(following):
    found = duckdb.execute("SELECT regexp_matches($text, $definition)", {"text": following, "definition": DEFINITION})
    assert found.fetchone() == (following in DEFINED,)


ROWS = [
    ("Mira Holt", "Mira Holt was an engineer. She grew up in Tarnby."),
    ("Tarnby", "Tarnby is a market town."),
    ("Order (religious)", "An order is a community. Mira Holt never joined one."),
    ("Rules", "The Order met in Tarnby. Some order was kept. Holt and Mira were absent."),
    ("", "The Esk is a river. It passes Tarnby."),
    ("", "Barges on the Esk bring coal."),
    ("Minutes", "Nobody came."),
    ("", "In short order the rain was over."),
]
LONG = "# Diary\n\n" + "\n\n".join(f"## Day {n}\n\n" + f"On day {n} nothing of note happened. " * 60 for n in range(40))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("graph")
    (root / "input").mkdir()
    rows = [{"id": str(n), **({"title": title} if title else {}), "text": text} for n, (title, text) in enumerate(ROWS)]
    (root / "input" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (root / "input" / "diary.md").write_text(LONG)
    (root / "input" / "visit.md").write_text("# Visit\n\nTarnby\n\n## Mira Holt\n\nShe was out.\n\nDiary of a visit.\n")
    with indexed(root, root / "input") as made:
        yield made


def row(project, n: int) -> int:
    ((number,),) = project.sql(
        "SELECT t.human_readable_id FROM text_units t JOIN documents d ON d.id = t.document_id "
        f"WHERE d.row_number = {n + 1}"
    )
    return number


def subjects(project) -> dict[str, set[int]]:
    found = defaultdict(set)
    for title, unit in project.sql("SELECT title, text_unit FROM search.passage_subjects"):
        found[title].add(unit)
    return found


def links(project) -> set[tuple[int, str]]:
    return set(
        project.sql(
            "SELECT DISTINCT n.text_unit, s.title FROM search.passage_names n JOIN search.passage_subjects s ON s.name = n.name"
        )
    )


def test_text_unit_is_about_its_title_its_headings_and_its_first_definition(project):
    found = subjects(project)
    assert row(project, 0) in found["Mira Holt"]
    assert row(project, 2) in found["Order"]  # without its qualifier
    assert found["Esk"] == {row(project, 4)}  # defined, without a title
    ((visit,),) = project.sql(
        "SELECT human_readable_id FROM text_units WHERE headings[1] = 'Visit' AND text LIKE '%She was out%'"
    )
    assert visit in found["Visit"]
    assert visit in found["Mira Holt"]  # a heading that begins in it


def test_titles_are_found_in_the_text_of_others_as_they_are_written(project):
    found = links(project)
    assert (row(project, 0), "Tarnby") in found
    assert (row(project, 2), "Mira Holt") in found
    assert (row(project, 3), "Order") in found  # and not for the common word "order"
    assert (row(project, 5), "Esk") in found
    assert (row(project, 3), "Mira Holt") not in found  # the words alone are no name
    assert all(title != "Minutes" for _, title in found)


def test_title_of_many_text_units_is_not_a_subject(project):
    ((units,),) = project.sql("SELECT count(*) FROM text_units WHERE headings[1] = 'Diary'")
    assert units > MAX_HEADED
    assert "Diary" not in subjects(project)


def test_weights_are_shares(project):
    assert project.sql("SELECT DISTINCT round(sum(weight), 9) FROM search.passage_subjects GROUP BY name") == [(1.0,)]
    assert (
        project.sql("SELECT count(*) FROM search.passage_names GROUP BY text_unit HAVING sum(weight) > 1 + 1e-9") == []
    )
    # Tarnby: named by its own unit, by those of Mira Holt, of the rules, of the Esk and of the visit.
    assert project.sql(
        "SELECT DISTINCT round(pow(2, 1 / rarity)) FROM search.passage_subjects WHERE title = 'Tarnby'"
    ) == [(6,)]
    # Order: a title of one word is as common as the word, which one more text has.
    assert project.sql("SELECT round(pow(2, 1 / rarity)) FROM search.passage_subjects WHERE title = 'Order'") == [(4,)]
