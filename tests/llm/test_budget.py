"""The cap on cost holds before a call is sent."""

import asyncio
import logging
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.model_errors import BudgetExceeded
from graphrag_assets.llm.model_options import Completion, PriceOptions
from graphrag_assets.llm.prices import Prices
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab, ask, gather, run
from tests.llm.test_ledger import entry


def reserve(lab: Lab, budget: Budget, amount: float, expected: float | None = None, seconds: float = 60.0):
    return run(
        budget.reserve(lab.ledger, lambda: (amount if expected is None else expected, amount), "a call", seconds)
    )


def test_a_reservation_counts_for_all_processes_until_it_is_settled(lab: Lab) -> None:
    run(lab.ledger.put(entry("paid", cost_usd=0.25)))
    mine, other = Budget(1.0), Budget(1.0)
    with reserve(lab, mine, 0.5) as reservation:
        with pytest.raises(
            BudgetExceeded, match=r"\$0.2500 spent today \(\$0.0000 by this run\), \$0.5000 reserved for"
        ):
            reserve(lab, other, 0.8)  # which does not fit even if the first costs nothing
        reservation.settle(0.125)
    with pytest.raises(BudgetExceeded, match=r"\$1.00 is used up: \$0.3750 spent today .*Raise GRAPHRAG_BUDGET_USD"):
        reserve(lab, other, 0.63)
    assert reserve(lab, other, 0.625)
    assert (mine.spent, other.spent) == (0.125, 0.0)


def test_a_call_that_may_fit_waits_for_those_in_flight_in_any_process(lab: Lab) -> None:
    async def work() -> list[str]:
        budgets, order = (Budget(1.0), Budget(1.0)), []

        async def call(name: str, budget: Budget, seconds: float) -> None:
            with await budget.reserve(lab.ledger, lambda: (0.1, 0.8), name, 60.0) as reservation:
                order.append(name)
                await asyncio.sleep(seconds)
                reservation.settle(0.1)

        first = asyncio.create_task(call("first", budgets[0], 0.5))
        while not order:
            await asyncio.sleep(0.01)
        await asyncio.gather(call("second", budgets[0], 0.0), call("third", budgets[1], 0.0), first)
        with pytest.raises(BudgetExceeded, match=r"\$0.3000 spent today \(\$0.2000 by this run"):
            await budgets[0].reserve(lab.ledger, lambda: (0.9, 0.9), "fourth", 60.0)
        return order

    assert run(work())[0] == "first"


def test_what_a_run_without_a_cap_pays_first_in_a_day_counts_once(lab: Lab) -> None:
    model = lab.chat(Budget(), prices=ONE_DOLLAR_PER_TOKEN)
    run(model.complete(ask()))
    lab.ledger.close()
    paid = lab.ledger.spent_today()
    with pytest.raises(BudgetExceeded, match=rf"\${paid:.4f} spent today"):
        reserve(lab, Budget(paid), 1.0)
    assert reserve(lab, Budget(paid + 1.0), 1.0)


def test_the_cost_of_a_call_without_an_answer_is_written_when_it_ends(lab: Lab) -> None:
    reservation = reserve(lab, Budget(1.0), 0.9)
    reservation.settle(0.1)  # such as a stream that is broken off
    run(lab.ledger.catch_up())
    other = Ledger(lab.folder / "ledger.db")  # of another process
    assert run(Budget(1.0).reserve(other, lambda: (0.9, 0.9), "a call", 60.0))


def test_without_calls_in_flight_what_is_left_pays_for_a_call_that_is_expected_to_fit(lab: Lab) -> None:
    with reserve(lab, Budget(1.0), 5.0, expected=0.5) as reservation:
        assert reservation.ceiling == 1.0


def test_the_reservation_of_a_killed_process_ends_with_the_timeout_of_its_call(lab: Lab) -> None:
    reserve(lab, Budget(1.0), 0.9, seconds=1.0)  # never settled
    assert reserve(lab, Budget(1.0), 0.9)


def test_a_ledger_that_does_not_reply_stops_no_deadline(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve(lab, Budget(1.0), 0.0).settle(0.25)  # creates the ledger
    writer = sqlite3.connect(lab.folder / "ledger.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    async def work() -> None:
        budget = Budget(1.0)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await budget.reserve(lab.ledger, lambda: (0.5, 0.5), "a call", 60.0)
        finally:
            writer.execute("ROLLBACK")
        waiting = [budget.reserve(lab.ledger, lambda: (0.25, 0.25), f"call {number}", 60.0) for number in range(3)]
        assert len(await asyncio.gather(*waiting)) == 3  # the reservation that nobody waited for has ended

    run(work())


def test_a_run_that_lasts_past_midnight_keeps_what_it_has_spent(lab: Lab) -> None:
    budget = Budget(1.0)
    reserve(lab, budget, 0.9).settle(0.9)
    run(lab.ledger.put())
    with sqlite3.connect(lab.folder / "ledger.db") as ledger:  # a new day has begun
        ledger.execute("UPDATE llm_spending SET key = '2020-01-01', until = '2020-01-02'")
    with pytest.raises(BudgetExceeded, match=r"\$0.0000 spent today \(\$0.9000 by this run"):
        reserve(lab, budget, 0.2)
    assert reserve(lab, Budget(1.0), 0.2)


def test_a_failed_call_releases_its_reservation(lab: Lab) -> None:
    budget = Budget(1.0)
    with pytest.raises(ZeroDivisionError), reserve(lab, budget, 1.0):
        raise ZeroDivisionError
    assert budget.spent == 0.0
    assert reserve(lab, budget, 1.0)


def test_without_a_cap_nothing_is_estimated_but_spend_is_counted(lab: Lab) -> None:
    budget = Budget(None)
    with run(budget.reserve(lab.ledger, lambda: 1 / 0, "a call", 60.0)) as reservation:
        reservation.settle(0.5)
    assert budget.spent == 0.5
    with pytest.raises(BudgetExceeded, match=r"\$0.5000 spent today"):
        reserve(lab, Budget(1.0), 0.6)


@pytest.mark.extended
def test_the_last_answer_may_be_as_long_as_the_rest_pays_for(lab: Lab) -> None:
    model = lab.chat(Budget(2_000.0), prices=ONE_DOLLAR_PER_TOKEN)  # an answer without a limit may cost 8,000
    run(model.complete(ask()))
    (sent,) = lab.server.requests
    assert 1_900 < sent.body["max_tokens"] < 2_000
    roomy = lab.chat(Budget(20_000.0), prices=ONE_DOLLAR_PER_TOKEN)
    run(roomy.complete(ask("Ada met George.")))
    assert "max_tokens" not in lab.server.requests[-1].body


@pytest.mark.extended
def test_the_cap_holds_and_raising_it_pays_only_for_the_rest(lab: Lab) -> None:
    requests = [ask(f"Text number {n}. It is about Ada.", max_tokens=60) for n in range(40)]
    workers, cap = 5, 300.0

    async def spend(budget: Budget) -> int:
        async with lab.chat(budget, {"concurrency": workers}, prices=ONE_DOLLAR_PER_TOKEN) as model:
            answers = await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {Completion, BudgetExceeded}
        return sum(isinstance(answer, Completion) for answer in answers)

    first = Budget(cap)
    answered = run(spend(first))
    assert 0 < answered < 40
    assert first.spent <= cap
    assert first.spent == pytest.approx(lab.ledger.spent_today())
    assert len(lab.server.requests) == answered

    second = Budget(cap * 100)
    assert run(spend(second)) == 40
    assert len(lab.server.requests) == 40
    assert second.spent + first.spent == pytest.approx(lab.ledger.spent_today())


@pytest.mark.extended
def test_processes_together_keep_the_cap_and_spend_what_a_killed_one_reserved(tmp_path: Path) -> None:
    spend_together(str(tmp_path / "ledger.db"))


def spend_together(where: str, cap: float = 300.0) -> None:
    """Three processes with ten calls at once spend the cap; a fourth is killed with its calls in flight."""
    command = [sys.executable, "-m", "tests.llm.spender", where, str(cap)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [processes[3].stdout.readline() for _ in range(3)] == ["calls\n"] * 3
    processes[3].kill()
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0, 0, 0, -signal.SIGKILL]
    assert cap - 1.0 < Ledger(where).spent_today() <= cap  # no call costs less than $1


def test_an_invalid_answer_is_paid_for_and_recorded(lab: Lab) -> None:
    lab.server.fail_next("empty", "empty")
    budget = Budget(None)
    model = lab.chat(budget, prices=ONE_DOLLAR_PER_TOKEN)
    with pytest.raises(Exception, match="in two attempts"):
        run(model.complete(ask()))
    assert budget.spent == lab.ledger.spent_today() == model.usage.total.cost_usd > 0
    assert lab.ledger.frame()["kind"].to_list() == ["invalid", "invalid"]


def test_prices_come_from_the_table_or_from_options() -> None:
    listed = Prices.of("openai/gpt-4o-mini")
    assert listed.cost(1_000_000, 1_000_000) == pytest.approx(0.15 + 0.60)
    assert listed.cost(1_000_000, 0, cached_tokens=600_000) == pytest.approx(
        (0.4 * listed.input_usd + 0.6 * listed.cached_usd) * 1e6
    )
    assert 0 < listed.cached_usd < listed.input_usd
    own = Prices.of("openai/gpt-4o-mini", PriceOptions(1.0, 2.0))
    assert own.cached_usd == own.input_usd
    assert own.cost(500_000, 500_000) == pytest.approx(1.5)
    assert own.source == "options"
    assert Prices.of("openai/gpt-4o-mini", PriceOptions(output_usd_per_million=0)).cost(1_000_000, 9) == pytest.approx(
        0.15
    )


def test_an_unknown_price_is_zero_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert Prices.of("openai/without-any-price").cost(1000, 1000) == 0
    assert [record.message for record in caplog.records if "without-any-price" in record.message] == [
        "No price is known for openai/without-any-price: its calls count as free and are not limited by a budget. "
        "Set its prices per million tokens."
    ]


def test_a_budget_is_shared_by_all_models_of_a_run(lab: Lab) -> None:
    budget = Budget(1e9)
    chat = lab.chat(budget, prices=ONE_DOLLAR_PER_TOKEN)
    embedding = lab.embedding(budget, prices=ONE_DOLLAR_PER_TOKEN)

    async def both() -> None:
        await gather(chat.complete, ask())
        await embedding.embed(["Ada"])

    run(both())
    assert budget.spent == chat.usage.total.cost_usd + embedding.usage.total.cost_usd
    assert embedding.usage.total.cost_usd > 0
