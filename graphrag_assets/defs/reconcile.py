"""Decides the next step of the automation: a pure function of the present state.

Every tick compares the folder with the database and the database with the publication. No decision depends on an
event, so a missed one does no harm: the next tick sees the difference. A batch that is committed during a refresh
makes that refresh out of date, and the next tick requests another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphrag_assets.indexing.scan import SETTLE_SECONDS, Scan
from graphrag_assets.runtime.outgoing import listed

MAX_ATTEMPTS = 4
FIRST_WAIT_SECONDS = 60.0
"""Wait before a failed request is made again; doubles with each failure."""
SLOW_WAIT_SECONDS = 86_400.0
"""Wait between attempts after `MAX_ATTEMPTS` failures."""


class Failures(NamedTuple):
    """Failed runs of one request.

    Attributes:
        n: how many.
        last: when the last ended (Unix time).
        canceled: whether one was canceled.
        unpaid: whether the last failed because the budget was used up or a model could not be used.
    """

    n: int
    last: float
    canceled: bool = False
    unpaid: bool = False


@dataclass(frozen=True)
class Observed:
    """The state that a tick observes.

    Attributes:
        scan: the folder beside the database.
        keys: the registered partitions.
        indexing: batches in unfinished runs.
        refreshing: whether a run of the global assets is unfinished.
        inputs: hash of the present revisions of all batches.
        published: the same for the newest publication; None before the first.
        failures: of earlier requests, by request.
        now: Unix time.
    """

    scan: Scan
    keys: frozenset[str]
    indexing: frozenset[str]
    refreshing: bool
    inputs: str
    published: str | None
    now: float
    failures: Mapping[str, Failures] = field(default_factory=dict)


class Request(NamedTuple):
    """A run to request. `name` identifies its purpose; `key` differs per attempt, since Dagster takes none twice."""

    name: str
    key: str
    batch: str | None = None


class Decision(NamedTuple):
    """The next step.

    Attributes:
        add, drop: partitions.
        batches: batches to index.
        refresh: the refresh, if one is due.
        waiting: for each change that is not requested now, why not.
    """

    add: list[str]
    drop: list[str]
    batches: list[Request]
    refresh: Request | None
    waiting: list[str]


def in_runs(requests: Sequence[Request], partitions: Sequence[str], maximum: int) -> list[list[Request]]:
    """The requests to index batches, by run: in the order of the partitions, up to a maximum.

    A process for each of a hundred edited folders would take minutes to start.
    """
    place = {batch: number for number, batch in enumerate(partitions)}
    ordered = sorted(requests, key=lambda request: place[str(request.batch)])
    return [ordered[start : start + maximum] for start in range(0, len(ordered), maximum)]


def are_neighbors(requests: Sequence[Request], partitions: Sequence[str]) -> bool:
    """Whether the batches are all partitions from one to another, which Dagster can give to a run."""
    first = partitions.index(str(requests[0].batch))
    return [request.batch for request in requests] == list(partitions[first : first + len(requests)])


def batch_request(scan: Scan, batch: str) -> str:
    """Identifies the change of a batch; the revision distinguishes A → B → A."""
    return f"{batch}@{scan.digests.get(batch, 'gone')}#{scan.revisions.get(batch, 0)}"


def refresh_request(inputs: str) -> str:
    """Identifies the refresh for these revisions of the batches."""
    return f"refresh@{inputs}"


def wanted(observed: Observed) -> list[str]:
    """Batches that differ from the folder, and are neither being written nor in an unfinished run."""
    scan = observed.scan
    busy = scan.settling | observed.indexing
    return [batch for batch in _differing(observed) if batch not in busy]


def _differing(observed: Observed) -> list[str]:
    return sorted({*observed.scan.revised, *observed.scan.deleted})


def decide(observed: Observed) -> Decision:
    """The next step.

    The refresh waits until no batch is requested or being indexed, so that one refresh serves many changes. A batch
    that failed, or that is still being written, delays nothing else, unless the budget ended in it or a model could
    not be used: then nothing is published, as the refresh would go on without, and readers would get part of what was
    to be paid for. A partition is dropped once its batch and its rows are deleted and the publication reflects it.
    """
    scan = observed.scan
    differing = _differing(observed)
    waiting = [f"Batch {batch} is being indexed." for batch in differing if batch in observed.indexing]
    waiting += [
        f"Batch {batch} is still being written: its newest file is younger than {SETTLE_SECONDS:g} seconds."
        for batch in differing
        if batch in scan.settling - observed.indexing
    ]
    outcomes = [_request(observed, batch_request(scan, batch), batch) for batch in wanted(observed)]
    batches = [outcome for outcome in outcomes if isinstance(outcome, Request)]
    up_to_date = observed.inputs == observed.published
    if not up_to_date and scan.revisions:
        if batches or observed.indexing:
            outcomes.append("The refresh waits until all requested batches are indexed.")
        elif unpaid := _unpaid(observed):
            outcomes.append(
                "The refresh waits, because the budget ended, or a model could not be used, in batch "
                f"{listed(unpaid)}: see the failed run. To publish what there is, launch the job refresh_graph."
            )
        elif observed.refreshing:
            outcomes.append("A run of the global assets is in progress.")
        else:
            outcomes.append(_request(observed, refresh_request(observed.inputs), None))
    refresh = next((o for o in outcomes if isinstance(o, Request) and o.batch is None), None)
    waiting += [outcome for outcome in outcomes if isinstance(outcome, str)]
    present = set(scan.digests) | set(scan.deleted)
    lost = sorted(observed.keys - present - observed.indexing)
    add = sorted(present - observed.keys)
    return Decision(add, lost if up_to_date and not batches else [], batches, refresh, waiting)


def _unpaid(observed: Observed) -> list[str]:
    """The batches to be indexed whose last run ended because the budget was used up or a model was out of service."""
    requests = {batch: batch_request(observed.scan, batch) for batch in wanted(observed)}
    return [batch for batch, name in requests.items() if name in observed.failures and observed.failures[name].unpaid]


def _request(observed: Observed, name: str, batch: str | None) -> Request | str:
    """The request, or why it is not made now."""
    what = "The refresh" if batch is None else f"Batch {batch}"
    failures = observed.failures.get(name, Failures(0, 0.0))
    if failures.canceled:
        return f"{what} was canceled. Launch it by hand, or change the batch."
    wait = 0.0
    if failures.n:
        wait = FIRST_WAIT_SECONDS * 2 ** (failures.n - 1) if failures.n < MAX_ATTEMPTS else SLOW_WAIT_SECONDS
    if observed.now < failures.last + wait:
        remaining = (failures.last + wait - observed.now) / 60
        return f"{what} failed {failures.n} times; the next attempt is in {remaining:.0f} minutes."
    return Request(name, f"{name}.{failures.n}", batch)
