"""Whatever happens to an index, completing it gives the index of the present documents, see `history.py`.

`HISTORIES=100 python -m pytest tests/hostile/test_history.py` tries more of them.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.hostile.history import IndexHistory

HISTORIES = int(os.environ.get("HISTORIES", "2"))


def histories(number: int) -> settings:
    return settings(
        max_examples=number,
        stateful_step_count=8,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_a_short_history_ends_in_the_index_of_the_present_documents():
    run_state_machine_as_test(IndexHistory, settings=settings(histories(1), stateful_step_count=3))


@pytest.mark.long
def test_any_history_ends_in_the_index_of_the_present_documents():
    run_state_machine_as_test(IndexHistory, settings=histories(HISTORIES))
