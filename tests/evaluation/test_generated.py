"""Generated questions: seeded, found where they were made, and kept under edits of other documents."""

from graphrag_assets.extras.evaluation.generated import generated_questions
from graphrag_assets.extras.evaluation.questions import place


def test_the_same_seed_gives_the_same_questions(sample):
    first = generated_questions(sample, 40)
    assert first == generated_questions(sample, 40)
    assert first != generated_questions(sample, 40, seed=1)
    assert {question.kind for question in first} == {"cloze", "bridge"}
    assert len({question.id for question in first}) == 40


def test_questions_do_not_say_their_answer_and_their_passages_are_there(sample):
    questions = generated_questions(sample, 40)
    placed, unplaced = place(sample, questions)
    assert unplaced == []
    for question in questions:
        assert question.answer.lower() not in question.text.lower()
    for each in placed:
        assert len(each.units) == (2 if each.question.kind == "bridge" else 1)
    bridges = [question for question in questions if question.kind == "bridge"]
    assert all(len({gold.document for gold in question.gold}) == 2 for question in bridges)


def test_an_edit_changes_the_questions_of_its_own_facts_alone(sample, changed):
    before = generated_questions(sample, 40)
    edited = before[-1].gold[0].document

    def drop(connection):
        connection.execute("DELETE FROM relationship_mentions WHERE document_id = ?", [edited])

    after = {question.id: question for question in generated_questions(changed(drop), 40)}
    for question in before:
        if question.kind == "cloze" and question.gold[0].document != edited:
            assert after[question.id] == question
        if edited in {gold.document for gold in question.gold}:
            assert question.id not in after
