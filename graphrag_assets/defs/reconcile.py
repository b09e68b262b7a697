"""What the automation does next: a pure function of what there is.

Every tick compares the folder with the database and the database with the publication, whatever happened before.
So nothing depends on having seen an event: what was missed is seen on the next tick, a batch that lands while the
graph is refreshed makes that refresh out of date, and the next one follows by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from graphrag_assets.indexing.scan import Scan

MOST_ATTEMPTS = 4
FIRST_WAIT_SECONDS = 60.0
"""A request that failed is made again after this long, then after twice as long, and so on."""


class Failures(NamedTuple):
    """Runs of one request that failed: how many, when the last ended (Unix time), whether somebody cancelled one."""

    n: int
    last: float
    cancelled: bool = False


@dataclass(frozen=True)
class Observed:
    """What a tick sees.

    Attributes:
        scan: the folder beside the database.
        keys: the registered partitions.
        indexing: batches in runs that are not over.
        refreshing: whether a run of the global assets is not over.
        inputs: hash of the batches' revisions as they are.
        published: that of the newest publication; None before the first.
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
    """A run to be asked for. `name` says what for; `key` differs with each attempt, since Dagster takes none twice."""

    name: str
    key: str
    batch: str | None = None


class Decision(NamedTuple):
    """Partitions to add and to drop, batches to index, and the refresh, if there is to be one."""

    add: list[str]
    drop: list[str]
    batches: list[Request]
    refresh: Request | None


def batch_request(scan: Scan, batch: str) -> str:
    """What a batch is to become from what it is: the revision tells A → B → A apart."""
    return f"{batch}@{scan.digests.get(batch, 'gone')}#{scan.revisions.get(batch, 0)}"


def refresh_request(inputs: str) -> str:
    """The refresh that these revisions of the batches ask for."""
    return f"refresh@{inputs}"


def wanted(observed: Observed) -> list[str]:
    """Batches that differ from the folder and that nobody is writing or indexing."""
    scan = observed.scan
    busy = scan.settling | observed.indexing
    return [batch for batch in sorted([*scan.revised, *scan.deleted]) if batch not in busy]


def decide(observed: Observed) -> Decision:
    """The next step.

    The refresh waits until no batch is asked for or being indexed, so that many changes are carried on once. A
    batch that failed, or that is still being written, holds up nobody. A partition is dropped when its batch is
    gone, its rows are gone, and the publication has taken notice.
    """
    scan = observed.scan
    batches = [
        request
        for batch in wanted(observed)
        if (request := _request(observed, batch_request(scan, batch), batch)) is not None
    ]
    up_to_date = observed.inputs == observed.published
    refresh = None
    if not batches and not observed.indexing and not observed.refreshing and not up_to_date and scan.revisions:
        refresh = _request(observed, refresh_request(observed.inputs), None)
    present = set(scan.digests) | set(scan.deleted)
    lost = sorted(observed.keys - present - observed.indexing)
    add = sorted(present - observed.keys)
    return Decision(add, lost if up_to_date and not batches else [], batches, refresh)


def _request(observed: Observed, name: str, batch: str | None) -> Request | None:
    failures = observed.failures.get(name, Failures(0, 0.0))
    if failures.cancelled or failures.n >= MOST_ATTEMPTS:
        return None
    wait = FIRST_WAIT_SECONDS * 2 ** (failures.n - 1) if failures.n else 0.0
    return Request(name, f"{name}.{failures.n}", batch) if observed.now >= failures.last + wait else None
