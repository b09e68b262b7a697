"""Candidates of entity resolution: pairs of entities that may be one thing, for somebody to decide on."""

from graphrag_assets.defs.reporting import Metadata, tables_metadata
from graphrag_assets.defs.stages import Stage, Step
from graphrag_assets.indexing import candidates


def find_candidates(step: Step) -> Metadata:
    """Pairs of entities that may be one thing, scored, with the decisions on them."""
    updated = candidates.update_candidates(step.index, step.run_id)
    return tables_metadata(step.names, updated.changes, updated.seconds, updated.frames, {})


FIND_CANDIDATES = Stage(
    "find_candidates",
    "retrieval",
    {"entity_candidates": ("entities", "relationships", "embeddings")},
    candidates.CODE_VERSION,
    find_candidates,
)
