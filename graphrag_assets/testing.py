"""For tests of your own: assert that an index finds the passages that answer your questions.

from graphrag_assets.query import GraphRAG
from graphrag_assets.testing import assert_recall

def test_the_index_answers_our_questions():
    with GraphRAG("data") as rag:
        assert_recall(rag, "questions.jsonl", at_5=0.8)
"""

from pathlib import Path

from graphrag_assets.extras.evaluation.bootstrap import mean
from graphrag_assets.extras.evaluation.questions import load_questions, place
from graphrag_assets.extras.evaluation.retrieval import measure
from graphrag_assets.query import GraphRAG

__all__ = ["assert_recall"]


def assert_recall(
    rag: GraphRAG,
    questions: str | Path,
    *,
    at_2: float | None = None,
    at_5: float | None = None,
    at_10: float | None = None,
    method: str = "local",
) -> None:
    """Assert the mean recall of a method over the questions of a file (docs/evaluation.md has its format).

    A question whose gold passage is not in the publication counts as 0. A file with a line that cannot be used fails.

    Raises:
        AssertionError: a recall is lower; the message names the questions whose passages were not found.
        InputError: the file cannot be read.
    """
    loaded = load_questions(Path(questions))
    asked = [question for question in loaded.questions if question.gold]
    placed, unplaced = place(rag.index.reader(), asked)
    wanted = {f"recall@{k}": share for k, share in ((2, at_2), (5, at_5), (10, at_10)) if share is not None}
    scores = measure(rag.index.reader(), placed, rag.tools.settings, [method], rag.context, (), rag.tools.embedder)
    problems = [str(problem) for problem in loaded.problems]
    for metric, share in wanted.items():
        values = {score.question: score.value for score in scores if score.metric == metric}
        reached = mean([values.get(question.id, 0.0) for question in asked])
        if reached < share:
            missed = [question.text for question in asked if values.get(question.id, 0.0) < 1]
            problems.append(
                f"{metric} by {method} is {reached:.3f}, less than {share:g}. Not found: {'; '.join(missed)}"
            )
    problems += [f"{question.text}: {reason}." for question, reason in unplaced]
    assert not problems, "\n".join(problems)
