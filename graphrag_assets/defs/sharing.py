"""How a step may share its model calls with other machines."""

import contextlib
from typing import Literal, Protocol

import dagster as dg

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.defs.index_names import IndexNames
from graphrag_assets.indexing.index import Index

Shared = Literal["reports", "embeddings"]


class ShareModels(Protocol):
    """Yields models for a step that others work for, too, while the block lasts."""

    def __call__(
        self,
        names: IndexNames,
        context: dg.AssetExecutionContext,
        index: Index,
        models: IndexingModels,
        kind: Shared,
        cache_not_before: str | None = None,
        /,
    ) -> contextlib.AbstractContextManager[IndexingModels]: ...


def alone(
    names: IndexNames,
    context: dg.AssetExecutionContext,
    index: Index,
    models: IndexingModels,
    kind: Shared,
    cache_not_before: str | None = None,
) -> contextlib.AbstractContextManager[IndexingModels]:
    """Yield the models as they are: this machine works alone."""
    return contextlib.nullcontext(models)
