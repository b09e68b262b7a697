"""Recall, right answers and the bootstrap, by hand."""

import asyncio

import numpy as np
import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.extras.evaluation.answers import has_answer, is_refusal, is_right
from graphrag_assets.extras.evaluation.questions import Question
from graphrag_assets.extras.evaluation.retrieval import paired, ranks, recall
from graphrag_assets.llm.model_options import Completion
from graphrag_assets.llm.prompts import prompts_of
from graphrag_assets.llm.task import TaskModel
from graphrag_assets.llm.tasks.table import Judgment
from graphrag_assets.settings import Settings

ASKED = Question(question="Who laid it?", answer="Cyrus Field's men")


def test_metrics_by_hand():
    found = ranks([9, 4, 7, 1, 2, 3, 5, 6, 8, 0], [{7}, {0, 3}, {11}])
    assert found == [3, 6, None]
    assert recall(found) == {"recall@2": 0, "recall@5": 1 / 3, "recall@10": 2 / 3, "MRR": 1 / 3}
    assert recall([1, 5]) == {"recall@2": 0.5, "recall@5": 1, "recall@10": 1, "MRR": 1}
    assert recall([None]) == {"recall@2": 0, "recall@5": 0, "recall@10": 0, "MRR": 0}


def test_an_answer_is_right_if_it_has_the_expected_words_and_refusals_are_recognized():
    assert has_answer(ASKED, "It was *Cyrus  Field’s* men who laid it.")
    assert not has_answer(ASKED, "The men of Cyrus Field.")
    assert is_refusal(NO_ANSWER)
    assert is_refusal(f"{CLOSEST}\n\n- Something.")
    assert not is_refusal("Cyrus Field's men.")


def test_a_chat_model_judges_an_answer_by_the_expected_one():
    class Model:
        async def complete(self, request):
            shown = request.messages[-1]["content"]
            assert "Who laid it?" in shown
            assert "[Data:" not in shown
            return Completion("", Judgment(right=shown.index("Cyrus Field's men") < shown.index("The men of")))

    model = TaskModel(Model(), prompts_of(Settings()))
    assert asyncio.run(is_right(model, ASKED, "The men of Field [Data: Sources (1)].")) is True


def test_the_paired_bootstrap_tells_a_loss_from_chance():
    draw = np.random.default_rng(1)
    before = draw.integers(0, 2, 50).astype(float)
    assert paired(before, before) == (0, 0, 0, 1)
    lost = before.copy()
    lost[np.flatnonzero(before)[:6]] = 0
    found = paired(before, lost)
    assert found.mean == pytest.approx(-0.12)
    assert found.low < -0.12 < found.high < 0
    assert found.p_worse < 0.01
    swapped = np.where(np.arange(50) == np.flatnonzero(before)[0], 0, before)
    assert paired(before, swapped).p_worse > 0.05
    assert paired(before, lost) == found  # the same numbers each time
