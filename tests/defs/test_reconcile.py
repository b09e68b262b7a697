"""What the automation does next, case by case."""

from dataclasses import replace

from graphrag_assets.defs.reconcile import (
    FIRST_WAIT_SECONDS,
    MAX_ATTEMPTS,
    SLOW_WAIT_SECONDS,
    Failures,
    Observed,
    Request,
    are_neighbors,
    batch_request,
    decide,
    in_runs,
    refresh_request,
)
from graphrag_assets.indexing.scan import Scan

IDLE = Scan(
    digests={"a": "1", "b": "2"},
    revised=[],
    pending=[],
    unchanged=["a", "b"],
    deleted=[],
    revisions={"a": 1, "b": 1},
    settling=frozenset(),
)
NOTHING = Observed(
    scan=IDLE,
    keys=frozenset({"a", "b"}),
    indexing=frozenset(),
    refreshing=False,
    inputs="now",
    published="now",
    now=1_000_000.0,
)


def see(**more) -> Observed:
    """An idle index, but for what is given; fields of the scan and of what is observed alike."""
    of_scan = {name: value for name, value in more.items() if name in Scan._fields}
    rest = {name: value for name, value in more.items() if name not in Scan._fields}
    return replace(NOTHING, scan=IDLE._replace(**of_scan), **rest)


def batches(observed: Observed) -> list[str | None]:
    return [request.batch for request in decide(observed).batches]


def test_nothing_changed_nothing_happens():
    assert decide(NOTHING) == ([], [], [], None, [])


def test_exactly_the_changed_batches_are_indexed_and_new_ones_registered():
    new = see(digests={"a": "1", "b": "3", "c": "4"}, revised=["b", "c"], published="earlier")
    decision = decide(new)
    assert batches(new) == ["b", "c"]
    assert decision.add == ["c"]
    assert decision.refresh is None  # it waits for them


def test_a_batch_that_is_gone_is_indexed_to_nothing_first_and_its_partition_dropped_after_the_refresh():
    gone = see(digests={"a": "1"}, deleted=["b"])
    assert batches(gone) == ["b"]
    assert decide(gone).drop == []
    emptied = see(digests={"a": "1"}, deleted=[], inputs="later")
    assert decide(emptied).drop == []  # the publication still has it
    assert decide(emptied).refresh is not None
    assert decide(replace(emptied, published="later")).drop == ["b"]


def test_a_partition_with_a_run_in_flight_is_not_dropped():
    assert decide(see(digests={"a": "1"}, indexing=frozenset({"b"}))).drop == []


def test_a_batch_being_written_or_indexed_is_left_alone():
    assert batches(see(revised=["a", "b"], settling=frozenset({"a"}))) == ["b"]
    assert batches(see(revised=["a", "b"], indexing=frozenset({"b"}))) == ["a"]


def test_the_refresh_follows_once_when_the_last_batch_is_done():
    changed = see(inputs="later")
    assert decide(replace(changed, indexing=frozenset({"a"}))).refresh is None
    assert decide(replace(changed, refreshing=True)).refresh is None
    assert decide(changed).refresh.name == refresh_request("later")


def test_a_batch_that_lands_while_the_refresh_runs_is_carried_on_by_the_next():
    # The refresh read revision "now" and published it; the batch was committed meanwhile.
    assert decide(see(inputs="later", published="now")).refresh is not None


def test_a_failed_batch_does_not_block_the_others_nor_the_refresh():
    observed = see(revised=["b"], inputs="later")
    failed = {batch_request(observed.scan, "b"): Failures(1, observed.now)}
    decision = decide(replace(observed, failures=failed))
    assert decision.batches == []
    assert decision.refresh is not None


def test_a_failed_request_is_made_again_later_each_time_and_then_once_a_day():
    observed = see(revised=["b"])
    name = batch_request(observed.scan, "b")
    keys = set()
    for n in range(MAX_ATTEMPTS):
        wait = FIRST_WAIT_SECONDS * 2 ** (n - 1) if n else 0
        failed = {name: Failures(n, observed.now - wait)}
        (request,) = decide(replace(observed, failures=failed)).batches
        keys.add(request.key)
        if n:
            early = {name: Failures(n, observed.now - wait + 1)}
            assert decide(replace(observed, failures=early)).batches == []
    assert len(keys) == MAX_ATTEMPTS  # Dagster takes no run key twice
    for n in (MAX_ATTEMPTS, 3 * MAX_ATTEMPTS):
        failed = {name: Failures(n, observed.now - SLOW_WAIT_SECONDS)}
        assert len(decide(replace(observed, failures=failed)).batches) == 1
        early = {name: Failures(n, observed.now - SLOW_WAIT_SECONDS + 600)}
        decision = decide(replace(observed, failures=early))
        assert decision.batches == []
        assert decision.waiting == [f"Batch b failed {n} times; the next attempt is in 10 minutes."]


def test_what_somebody_canceled_is_not_started_again():
    observed = see(revised=["b"])
    canceled = {batch_request(observed.scan, "b"): Failures(1, 0.0, canceled=True)}
    decision = decide(replace(observed, failures=canceled))
    assert decision.batches == []
    assert decision.waiting == ["Batch b was canceled. Launch it by hand, or change the batch."]


def test_going_back_to_earlier_content_is_a_change_like_any_other():
    first = see(digests={"a": "1", "b": "2"}, revised=["b"], revisions={"a": 1})
    back = see(digests={"a": "1", "b": "2"}, revised=["b"], revisions={"a": 1, "b": 2})
    assert decide(first).batches[0].key != decide(back).batches[0].key


def test_text_units_that_failed_are_not_paid_for_again_by_every_tick():
    assert decide(see(pending=["a"])).batches == []


def test_an_empty_database_is_not_refreshed():
    assert decide(see(digests={}, revisions={}, keys=frozenset(), published=None)).refresh is None


def test_every_change_that_is_not_requested_says_why():
    decision = decide(
        see(revised=["a", "b", "c"], settling=frozenset({"a"}), indexing=frozenset({"b"}), inputs="later")
    )
    assert decision.waiting == [
        "Batch b is being indexed.",
        "Batch a is still being written: its newest file is younger than 5 seconds.",
        "The refresh waits until all requested batches are indexed.",
    ]
    assert decide(see(inputs="later", refreshing=True)).waiting == ["A run of the global assets is in progress."]


def test_the_refresh_waits_while_a_batch_has_no_budget_left_and_goes_on_when_it_is_indexed():
    observed = see(revised=["b"], inputs="later")
    short = {batch_request(observed.scan, "b"): Failures(1, observed.now, unpaid=True)}
    decision = decide(replace(observed, failures=short))
    assert decision.refresh is None
    assert "the budget ended, or a model could not be used, in batch b: see the failed run" in " ".join(
        decision.waiting
    )
    again = decide(replace(observed, failures=short, now=observed.now + FIRST_WAIT_SECONDS))
    assert [request.batch for request in again.batches] == ["b"]
    paid = see(inputs="later", revisions={"a": 1, "b": 2})
    assert decide(replace(paid, failures=short)).refresh is not None


def test_batches_are_indexed_up_to_a_maximum_by_one_run_in_the_order_of_the_partitions():
    requests = [Request(name, name, name) for name in "acdefh"]
    runs = in_runs(requests, partitions="hgfedcba", maximum=3)
    assert ["".join(str(request.batch) for request in run) for run in runs] == ["hfe", "dca"]
    assert are_neighbors(requests[2:5][::-1], "hgfedcba")
    assert not are_neighbors(runs[0], "hgfedcba")


def test_a_hundred_edited_batches_among_a_thousand_are_five_runs():
    partitions = [f"{number:04}" for number in range(1000)]
    requests = [Request(name, name, name) for name in partitions[::10]]
    assert [len(run) for run in in_runs(requests, partitions, 20)] == [20] * 5
