"""The gate: five kinds of damage are caught and named, no change gives the same numbers, readers keep the old file."""

import json
import shutil

import duckdb
import pytest

from graphrag_assets.contracts.candidates import candidate_checks, register_candidate_check
from graphrag_assets.errors import CheckError
from graphrag_assets.extras.evaluation import gate
from graphrag_assets.extras.evaluation.gate import MAX_QUESTIONS, check_candidate, compare, gate_questions, in_words
from graphrag_assets.extras.evaluation.generated import generated_questions
from graphrag_assets.extras.evaluation.questions import FILE
from graphrag_assets.extras.evaluation.retrieval import Score
from graphrag_assets.settings import Settings
from graphrag_assets.text.languages import stop_words


def links_dropped(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DELETE FROM search.entity_text_units WHERE hash(text_unit, entity) % 10 = 0")


def mentions_dropped(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DELETE FROM entity_mentions WHERE hash(id) % 10 = 0")


def vectors_shuffled(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "UPDATE embeddings SET vector = other.vector FROM (SELECT number, lead(vector, 7) OVER (ORDER BY number) AS vector "
        "FROM embeddings) other WHERE other.number = embeddings.number AND other.vector IS NOT NULL"
    )


def postings_truncated(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DELETE FROM search.postings WHERE rowid >= (SELECT 0.8 * count(*) FROM search.postings)")


def stop_words_of_another_language(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("UPDATE search.languages SET stop_words = ?", [sorted(stop_words("fi"))])


def reports_of_another_publication(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "UPDATE community_reports SET full_content = other.full_content FROM (SELECT community, lead(full_content, 9) "
        "OVER (ORDER BY community) AS full_content FROM community_reports) other "
        "WHERE other.community = community_reports.community AND other.full_content IS NOT NULL"
    )


DAMAGES = {
    links_dropped: "links",
    mentions_dropped: "mentions",
    vectors_shuffled: "vectors",
    postings_truncated: "terms",
    stop_words_of_another_language: "stop words",
    reports_of_another_publication: "reports",
}


_scores: list[Score] = []
"""Of the undamaged publication, measured once."""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_caught_with_the_metric_and_the_questions(sample, changed, damage):
    questions = generated_questions(sample, MAX_QUESTIONS)
    comparison, (_scores[:], _) = compare(sample, changed(damage), questions, Settings(), _scores)
    worse = {verdict.method: verdict for verdict in comparison.verdicts if verdict.is_worse}
    assert DAMAGES[damage] in worse
    said = in_words(list(worse.values()), comparison.questions, 1)
    verdict = worse[DAMAGES[damage]]
    assert f"by {DAMAGES[damage]} {100 * verdict.before:.1f} → {100 * verdict.after:.1f}" in said
    assert comparison.questions[verdict.lost[0]].text in said


def test_no_change_gives_the_same_numbers_to_the_last_digit(sample, changed):
    questions = generated_questions(sample, MAX_QUESTIONS)
    comparison, (before, after) = compare(sample, changed(lambda _: None), questions, Settings())
    assert before == after
    assert len(comparison.questions) == MAX_QUESTIONS
    assert [verdict for verdict in comparison.verdicts if verdict.before != verdict.after or verdict.lost] == []
    assert {verdict.method for verdict in comparison.verdicts} == {
        *("BM25", "vectors", "graph", "links", "relationships", "mentions", "terms", "stop words", "reports"),
    }


def test_only_missing_scores_of_the_accepted_publication_are_measured(sample, changed):
    questions = generated_questions(sample, 10)
    _, (before, _) = compare(sample, sample, questions, Settings())
    altered = [score._replace(value=0.0) for score in before if score.question == questions[0].id]
    _comparison, (again, _) = compare(sample, sample, questions, Settings(), altered)
    assert sorted(again) == sorted([*altered, *(score for score in before if score.question != questions[0].id)])


def test_a_corrected_question_is_measured_again(sample, tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "MAX_QUESTIONS", 1)
    (document,) = sample.rows("SELECT title FROM documents LIMIT 1")["title"]

    def scores(text: str, recorded: list[Score]) -> list[Score]:
        line = {"id": "mine", "question": text, "document": document}
        (tmp_path / FILE).write_text(json.dumps(line), encoding="utf-8")
        questions = gate_questions(Settings(data=tmp_path), sample)
        return compare(sample, sample, questions, Settings(), recorded)[1][0]

    before = [score._replace(value=0.5) for score in scores("Who?", [])]
    assert scores("Who?", before) == before
    assert not {score.value for score in scores("When?", before)} & {0.5}


def test_a_worse_candidate_is_blocked_and_readers_keep_the_old_one(start_with, monkeypatch):
    text = "".join(
        f"Captain {name} Ashton commanded the {ship} of the Ordway Company from 18{n}. The {ship} sailed to Port {name} "
        f"with {name} Ashton and {n} men of the Ordway Company.\n\n"
        for n, (name, ship) in enumerate(zip(NAMES, SHIPS, strict=True), 30)
    )
    project = start_with({"one/a.txt": text, "two/b.txt": "The Ordway Company was founded in 1830 by Jonas Ordway."})
    folder, settings = project.index.settings.index_folder, project.index.settings
    current = (folder / "graphrag.duckdb").resolve()
    draft = folder / "draft.duckdb"
    shutil.copyfile(current, draft)
    blocking = settings.model_copy(update={"gate": "block"})
    check_candidate(blocking, draft, 2)
    with duckdb.connect(str(draft)) as connection:
        postings_truncated(connection)
        connection.execute("DELETE FROM search.postings WHERE number % 2 = 0")
    with pytest.raises(CheckError, match=r"readers keep publication 1\. Worse than publication 1: .*by terms 100\.0 →"):
        check_candidate(blocking, draft, 2)
    check_candidate(settings.model_copy(update={"gate": "off"}), draft, 2)


NAMES = ["Abel", "Boyd", "Cole", "Dale", "Earl", "Finn", "Glen", "Hugh", "Ivan", "Jude", "Kurt", "Lyle"]
SHIPS = ["Arrow", "Bream", "Comet", "Dover", "Eagle", "Falcon", "Gannet", "Heron", "Ibis", "Jackal", "Kestrel", "Lark"]


def test_what_a_check_raises_keeps_the_file_from_readers(start_with, monkeypatch):
    project = start_with({"one/a.txt": "Captain James Anderson commanded the Great Eastern."})
    before = (project.root / "index" / "graphrag.duckdb").resolve()
    register_candidate_check(f"{__name__}.refuse")
    try:
        project.write("one/a.txt", "Captain James Anderson commanded the Great Eastern in 1865.")
        with pytest.raises(CheckError, match="refused 2"):
            project.index_all()
        assert (project.root / "index" / "graphrag.duckdb").resolve() == before
        assert len(list((project.root / "index" / "publications").iterdir())) == 1
    finally:
        from graphrag_assets.contracts import candidates

        candidates._PLACES.remove(f"{__name__}.refuse")


def refuse(settings: Settings, candidate, number: int) -> None:
    raise CheckError(f"refused {number}")


def test_the_commands_and_the_definitions_register_the_gate():
    import graphrag_assets.cli.main
    import graphrag_assets.defs.index_definitions  # noqa: F401

    assert check_candidate in candidate_checks()
