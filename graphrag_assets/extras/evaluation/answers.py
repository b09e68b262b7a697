"""Whether answers are right: by the words of the expected answer, or by the judgment of the chat model."""

import asyncio
from collections.abc import Callable, Sequence

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.extras.evaluation.questions import Question
from graphrag_assets.extras.evaluation.retrieval import Score
from graphrag_assets.llm.event_loop import wait_for
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.task import TaskModel, ask_model
from graphrag_assets.llm.tasks.table import JUDGE_ANSWER
from graphrag_assets.query import GraphRAG, MethodName
from graphrag_assets.settings import Settings
from graphrag_assets.text.references import without_references

RIGHT, REFUSED = "right", "refused"
"""Metrics: of questions with an expected answer, right answers; of unanswerable ones, refusals."""

Pair = tuple[Question, str]
"""A question and an answer to it."""
Judge = Callable[[Sequence[Pair]], list[bool]]


def judge_of(settings: Settings) -> Judge:
    """Return the judge of answers: the chat model for questions where one is set, else a comparison of words."""
    if not settings.model_of("query"):
        return lambda pairs: [has_answer(question, answer) for question, answer in pairs]
    from graphrag_assets.llm.backend import chat_model

    model = TaskModel(chat_model(settings, use="query"), prompts_of(settings))
    return lambda pairs: wait_for(_judged(model, pairs))


async def _judged(model: TaskModel, pairs: Sequence[Pair]) -> list[bool]:
    return await asyncio.gather(*(is_right(model, question, answer) for question, answer in pairs))


async def is_right(model: TaskModel, question: Question, answer: str) -> bool:
    """Whether a chat model finds that an answer says what the expected one says."""
    quoted = [f"The documents say: {gold.quote}" for gold in question.gold if gold.quote]
    expected = "\n\n".join([question.answer or "", *quoted])
    values = {"question": question.question, "expected": expected, "answer": without_references(answer)}
    return (await ask_model(model, JUDGE_ANSWER, **values))[0].right


def has_answer(question: Question, answer: str) -> bool:
    """Whether the words of the expected answer stand in an answer, without regard to emphasis, case and spaces."""
    return _plain(question.answer or "") in _plain(answer)


def is_refusal(answer: str) -> bool:
    """Whether an answer refuses; the closest passages in place of an answer are a refusal, too."""
    return not answer.strip() or answer.startswith(CLOSEST) or NO_ANSWER in answer


def measure_answers(
    rag: GraphRAG, questions: Sequence[Question], methods: Sequence[MethodName], judge: Judge
) -> list[Score]:
    """Answer the questions that have an expected answer or are unanswerable, by each method, and judge the answers."""
    scores: list[Score] = []
    for method in methods:
        pairs = [
            (each, rag.search(method, each.question).answer) for each in questions if each.answer or not each.answerable
        ]
        answered = [(each, answer) for each, answer in pairs if each.answerable]
        for (each, _), right in zip(answered, judge(answered), strict=True):
            scores.append(Score(each.question, method, RIGHT, float(right)))
        scores += [
            Score(each.question, method, REFUSED, float(is_refusal(answer)))
            for each, answer in pairs
            if not each.answerable
        ]
    return scores


def _plain(text: str) -> str:
    return " ".join(text.replace("*", "").replace("’", "'").split()).casefold()
