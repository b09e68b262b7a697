"""The cap on cost holds before a call is sent."""

import asyncio

import pytest

from graphrag_assets.llm.ledger import Ledger
from graphrag_assets.llm.limits import Budget
from graphrag_assets.llm.model_errors import BudgetExceeded
from graphrag_assets.llm.model_options import Completion, PriceOptions
from graphrag_assets.llm.provider import Prices
from tests.llm.conftest import ONE_DOLLAR_PER_TOKEN, Lab, ask, run
from tests.llm.test_ledger import entry


def check(lab: Lab, budget: Budget, expected: float) -> None:
    run(budget.check(lab.ledger, lambda: expected, "a call"))


def test_what_was_spent_today_and_the_expected_price_must_fit(lab: Lab) -> None:
    run(lab.ledger.put(entry("paid", cost_usd=0.25)))
    budget = Budget(1.0)
    check(lab, budget, 0.75)
    with pytest.raises(BudgetExceeded, match=r"a call: .*\$0.2500 spent today .*next call may cost \$0.8000"):
        check(lab, budget, 0.8)
    budget.spend(0.5)
    check(lab, budget, 0.25)
    with pytest.raises(
        BudgetExceeded, match=r"\$1.00 is used up: \$0.7500 spent today \(\$0.5000 by this run.*GRAPHRAG_BUDGET_USD"
    ):
        check(lab, budget, 0.26)
    budget.spend(0.25)
    with pytest.raises(BudgetExceeded):  # also a call whose price is unknown
        check(lab, budget, 0.0)


def test_what_other_processes_spend_counts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_assets.llm.limits.REFRESH_SECONDS", 0.0)
    budget, other = Budget(1.0), Ledger(lab.folder / "ledger.db")
    check(lab, budget, 0.9)
    budget.spend(0.125)
    run(lab.ledger.put(entry("mine", cost_usd=0.125)))
    run(other.put(entry("theirs", cost_usd=0.25)))
    with pytest.raises(BudgetExceeded, match=r"\$0.3750 spent today \(\$0.1250 by this run"):
        check(lab, budget, 0.63)
    check(lab, budget, 0.625)
    other.close()


def test_the_cost_of_a_stream_that_is_left_is_recorded(lab: Lab) -> None:
    model = lab.chat(Budget(), prices=ONE_DOLLAR_PER_TOKEN)

    async def leave() -> None:
        stream = model.stream(ask())
        await anext(stream)
        await stream.aclose()

    run(leave())
    assert model.budget.spent == lab.ledger.spent_today() > 0
    assert lab.ledger.frame()["kind"].to_list() == ["invalid"]


@pytest.mark.parametrize("workers", [1, 5])
def test_only_calls_in_flight_pass_the_cap_and_raising_it_pays_only_for_the_rest(lab: Lab, workers: int) -> None:
    requests = [ask(f"Text number {n}. It is about Ada.") for n in range(40)]
    cap = 300.0

    async def spend(budget: Budget) -> int:
        model = lab.chat(budget, {"concurrency": workers}, prices=ONE_DOLLAR_PER_TOKEN, parameters='{"max_tokens": 60}')
        answers = await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {Completion, BudgetExceeded}
        return sum(isinstance(answer, Completion) for answer in answers)

    first = Budget(cap)
    answered = run(spend(first))
    assert 0 < answered < 40
    highest = lab.ledger.frame()["cost_usd"].max()
    assert first.spent <= cap + workers * highest
    assert first.spent == pytest.approx(lab.ledger.spent_today())
    assert len(lab.server.requests) == answered

    second = Budget(cap * 100)
    assert run(spend(second)) == 40
    assert len(lab.server.requests) == 40
    assert second.spent + first.spent == pytest.approx(lab.ledger.spent_today())


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
