"""The cap on cost holds before a call is sent."""

import asyncio
import logging
import threading
import time

import pytest

from graphrag_assets.llm.budget import Budget
from graphrag_assets.llm.model_errors import BudgetExceeded
from graphrag_assets.llm.model_options import Completion, PriceOptions
from graphrag_assets.llm.prices import Prices
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab, ask, gather, run


def reserve(budget: Budget, amount: float):
    return run(budget.reserve(lambda: amount, "a call"))


def test_a_reservation_counts_until_it_is_settled() -> None:
    budget = Budget(1.0, lambda: 0.25)
    with reserve(budget, 0.5) as reservation:
        assert budget.left == 0.25
        with pytest.raises(BudgetExceeded, match=r"budget of \$1.00 is used up.*Raise GRAPHRAG_BUDGET_USD"):
            reserve(budget, 0.8)  # which does not fit even if the first costs nothing
        reservation.settle(0.125)
    assert (budget.spent, budget.reserved, budget.left) == (0.125, 0.0, 0.625)


def test_a_call_that_may_fit_waits_for_those_in_flight() -> None:
    async def work() -> list[str]:
        budget, order = Budget(1.0), []

        async def call(name: str, seconds: float, cost: float) -> None:
            with await budget.reserve(lambda: 0.8, name) as reservation:
                order.append(name)
                await asyncio.sleep(seconds)
                reservation.settle(cost)

        await asyncio.gather(call("first", 0.2, 0.1), call("second", 0.0, 0.1))
        with pytest.raises(BudgetExceeded, match=r"\$0.2000 by this run"):
            await budget.reserve(lambda: 0.9, "third")
        return order

    assert run(work()) == ["first", "second"]


@pytest.mark.extended
def test_all_calls_that_fit_are_made_at_the_default_concurrency(lab: Lab) -> None:
    price = PriceOptions(
        0.0, 1_000.0
    )  # the reservation of an unknown answer is 1 dollar, an answer costs a cent or two
    model = lab.chat(Budget(2.0), {"concurrency": 25}, prices=price)
    answers = run(gather(model.complete, *(ask(f"Ada met Charles {i} times.") for i in range(30))))
    assert len(answers) == 30
    assert model.budget.spent < 2.0


def test_spending_of_other_processes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_assets.llm.budget.REFRESH_SECONDS", 0.0)
    recorded = [0.0]
    budget = Budget(1.0, lambda: recorded[0])
    with reserve(budget, 0.25) as reservation:
        reservation.settle(0.25)
    recorded[0] = 0.25  # the ledger has it now
    with reserve(budget, 0.1):
        assert budget.left == pytest.approx(0.65)
    recorded[0] = 0.9
    with pytest.raises(BudgetExceeded, match=r"\$0.9000 spent today \(\$0.2500 by this run\)"):
        reserve(budget, 0.2)


def test_a_ledger_that_does_not_reply_stops_no_deadline() -> None:
    replies = threading.Event()

    def spent_today() -> float:
        replies.wait(20)
        return 0.25

    async def work() -> None:
        budget = Budget(1.0, spent_today)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await budget.reserve(lambda: 0.5, "a call")
            assert not replies.is_set()
        finally:
            threading.Timer(0.1, replies.set).start()
        waiting = [budget.reserve(lambda: 0.25, f"call {number}") for number in range(3)]
        reservations = await asyncio.gather(*waiting)  # they share the reading that has begun
        assert (len(reservations), budget.left) == (3, 0.0)

    began = time.monotonic()
    run(work())
    assert time.monotonic() - began < 10


def test_a_run_that_lasts_past_midnight_keeps_what_it_has_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_assets.llm.budget.REFRESH_SECONDS", 0.0)
    budget = Budget(1.0, lambda: 0.0)  # a new day has begun
    with reserve(budget, 0.9) as reservation:
        reservation.settle(0.9)
    assert budget.left == pytest.approx(0.1)


def test_a_failed_call_releases_its_reservation() -> None:
    budget = Budget(1.0)
    with pytest.raises(ZeroDivisionError), reserve(budget, 0.5):
        raise ZeroDivisionError
    assert (budget.spent, budget.reserved) == (0.0, 0.0)


def test_without_a_cap_nothing_is_estimated_but_spend_is_counted() -> None:
    budget = Budget(None)
    with run(budget.reserve(lambda: 1 / 0, "a call")) as reservation:
        reservation.settle(0.5)
    assert (budget.spent, budget.left) == (0.5, None)


@pytest.mark.extended
def test_at_the_cap_nothing_is_sent(lab: Lab) -> None:
    model = lab.chat(Budget(100.0, lambda: 99.0), prices=ONE_DOLLAR_PER_TOKEN)
    with pytest.raises(BudgetExceeded, match=r"extract of u1 in batch letters: .*\$99.0000 spent today"):
        run(model.complete(ask(unit="u1", batch="letters")))
    assert lab.server.requests == []
    assert model.usage.total.calls == 0


@pytest.mark.extended
def test_the_cap_holds_within_one_call_per_worker_and_raising_it_pays_only_for_the_rest(lab: Lab) -> None:
    requests = [ask(f"Text number {n}. It is about Ada.", max_tokens=60) for n in range(40)]
    workers, cap = 5, 300.0

    async def spend(budget: Budget) -> int:
        async with lab.chat(budget, {"concurrency": workers}, prices=ONE_DOLLAR_PER_TOKEN) as model:
            answers = await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {Completion, BudgetExceeded}
        return sum(isinstance(answer, Completion) for answer in answers)

    first = Budget(cap)
    answered = run(spend(first))
    costliest = lab.ledger.frame()["cost_usd"].max()
    assert 0 < answered < 40
    assert first.spent <= cap + workers * costliest
    assert first.spent == pytest.approx(lab.ledger.spent_today())
    assert len(lab.server.requests) == answered

    second = Budget(cap * 100, lab.ledger.spent_today)
    assert run(spend(second)) == 40
    assert len(lab.server.requests) == 40
    assert second.spent + first.spent == pytest.approx(lab.ledger.spent_today())


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
            assert Prices.of("openai/never-heard-of").cost(1000, 1000) == 0
    assert [record.message for record in caplog.records if "never-heard-of" in record.message] == [
        "No price is known for openai/never-heard-of: its calls count as free and are not limited by a budget. "
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
