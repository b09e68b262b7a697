"""Reports and vectors of a large change, made by many machines.

The committer writes what is to be made to the staging area, in shards. Any machine makes a shard, by a run of its own.
The committer makes them too, from the other end of their order, so it waits for no machine, and makes what a killed one
leaves. The stage that asked commits everything in one transaction.

    <staging>/shards/<kind>-<hash>/<run id>.items, made
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from graphrag_assets import __version__
from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.contracts.records import ReportMaterial, ReportRecord
from graphrag_assets.contracts.usage import Usage, UsageMeter
from graphrag_assets.errors import StagingError
from graphrag_assets.ids import stable_id
from graphrag_assets.indexing import embeddings, report_inputs
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.stage import usage_sums
from graphrag_assets.indexing.staged_batches import staging_of
from graphrag_assets.store.staging import SHARDS, Staging

SHARD_SIZE = 500
"""Reports or vectors per shard: enough to be worth a run of their own. Fewer are made by the committer alone."""
REPORTS, EMBEDDINGS = "reports", "embeddings"
_ITEMS, _MADE = ".items", "made"


class _Kind(NamedTuple):
    """What shards of a kind hold, and how they are made; `made_with` is what decides the result besides the items."""

    items: TypeAdapter[Any]
    made: TypeAdapter[Any]
    make: Callable[[IndexingModels, Any], Any]
    made_with: Callable[[IndexingModels], str]


_KINDS = {
    REPORTS: _Kind(
        TypeAdapter(list[ReportMaterial]),
        TypeAdapter(list[ReportRecord]),
        lambda models, materials: models.write_reports(materials),
        lambda models: f"{models.reporter} {report_inputs.CODE_VERSION} {__version__}",
    ),
    EMBEDDINGS: _Kind(
        TypeAdapter(list[str]),
        TypeAdapter(list[list[float]]),
        lambda models, texts: models.embed(texts).tolist(),
        lambda models: f"{models.embedding_model} {embeddings.CODE_VERSION} {__version__}",
    ),
}


@dataclass(frozen=True)
class _Sharing:
    """How the committer shares the work of one stage."""

    index: Index
    staging: Staging
    kind: str
    models: IndexingModels
    run_id: str
    cache_not_before: str | None
    usage_elsewhere: UsageMeter

    def is_worth_it(self, items: Sequence[Any]) -> bool:
        return len(items) > SHARD_SIZE

    def make(self, items: Sequence[Any]) -> list[Any]:
        """What is made of the items, in their order."""
        kind = _KINDS[self.kind]
        n_shards, shards = -(-len(items) // SHARD_SIZE), dict[int, list[int]]()
        listed = kind.items.dump_python(list(items), mode="json")
        for place, item in enumerate(listed):
            shards.setdefault(int(stable_id(json.dumps(item))[:8], 16) % n_shards, []).append(place)
        parts = {self._offer([listed[place] for place in places]): places for places in shards.values()}
        made: dict[int, Any] = {}
        for folder, places in sorted(parts.items(), reverse=True):
            made |= zip(places, self._made(folder, [items[place] for place in places]), strict=True)
        return [made[place] for place in range(len(items))]

    def _offer(self, items: list[Any]) -> str:
        """Write a shard for other machines; returns its folder, which is named by all that decides the result."""
        order = {
            "kind": self.kind,
            "made_with": _KINDS[self.kind].made_with(self.models),
            "options": {name: str(value) for name, value in self.index.run_options.items()},
            "cache_not_before": self.cache_not_before,
            "items": items,
        }
        folder = f"{SHARDS}/{self.kind}-{stable_id(json.dumps(order, sort_keys=True))}"
        self.staging.put(f"{folder}/{self.run_id}{_ITEMS}", json.dumps(order).encode())
        return folder

    def _made(self, folder: str, items: list[Any]) -> list[Any]:
        """What another machine has made of a shard, otherwise what is made here."""
        kind = _KINDS[self.kind]
        if content := self.staging.get(f"{folder}/{_MADE}"):
            found = json.loads(content)
            for task, used in found["usage"].items():
                self.usage_elsewhere.add(task, Usage(**used))
            return list(kind.made.validate_python(found["made"]))
        made = list(kind.make(self.models, items))
        _write(self.staging, folder, kind, made, {})
        return made


@contextlib.contextmanager
def shared(
    index: Index, models: IndexingModels, kind: str, run_id: str, cache_not_before: str | None = None
) -> Iterator[IndexingModels]:
    """`models` that share the work of a kind with other machines, where it is more than `SHARD_SIZE` items at once.

    When the stage has committed, at the end of this context, the shards are deleted. After an error they stay, and the
    next run uses what is made.
    """
    staging = staging_of(index)
    if staging is None:
        yield models
        return
    elsewhere = UsageMeter()
    sharing = _Sharing(index, staging, kind, models, run_id, cache_not_before, elsewhere)

    def write_reports(materials: Sequence[ReportMaterial]) -> list[ReportRecord]:
        return sharing.make(materials) if sharing.is_worth_it(materials) else models.write_reports(materials)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array(sharing.make(texts), np.float32) if sharing.is_worth_it(texts) else models.embed(texts)

    meters = (*models.meters, elsewhere)
    shares = {"write_reports": write_reports} if kind == REPORTS else {"embed": embed}
    yield replace(models, **shares, meters=meters)
    staging.remove(name for name in staging.names(SHARDS) if name.startswith(f"{SHARDS}/{kind}-"))


def open_shards(index: Index) -> list[str]:
    """The shards that nobody has made yet, in their order, each as `<folder>/<run id>`."""
    staging = staging_of(index)
    names = staging.names(SHARDS) if staging else []
    done = {name.rpartition("/")[0] for name in names if name.endswith(f"/{_MADE}")}
    items = [name.removesuffix(_ITEMS) for name in names if name.endswith(_ITEMS)]
    return [name for name in items if name.rpartition("/")[0] not in done]


def make_shard(index: Index, shard: str) -> int:
    """Make a shard on any machine; returns the number of items, 0 if that is no longer needed.

    Raises:
        StagingError: the staging area cannot be used, or this machine has other settings than the committer.
    """
    staging, folder = staging_of(index), shard.rpartition("/")[0]
    content = staging.get(f"{shard}{_ITEMS}") if staging else None
    if staging is None or content is None or staging.get(f"{folder}/{_MADE}") is not None:
        return 0
    order = json.loads(content)
    kind = _KINDS[order["kind"]]
    # The committer's run has asked: what is paid here is on its bill.
    own = index.with_options(order["options"])
    models = own.models(run_id=shard.rpartition("/")[2], cache_not_before=order["cache_not_before"])
    if kind.made_with(models) != order["made_with"]:
        raise StagingError(
            f"These {order['kind']} are to be made with {order['made_with']}, and this machine has "
            f"{kind.made_with(models)}. Give all machines the same settings and the same version; "
            "`graphrag-assets doctor cluster` compares them. The committer makes them meanwhile."
        )
    items = kind.items.validate_python(order["items"])
    _write(staging, folder, kind, kind.make(models, items), usage_sums(models.usage))
    return len(items)


def _write(staging: Staging, folder: str, kind: _Kind, made: Any, usage: dict[str, Any]) -> None:
    content = {"usage": usage, "made": kind.made.dump_python(made, mode="json")}
    staging.put(f"{folder}/{_MADE}", json.dumps(content).encode())
