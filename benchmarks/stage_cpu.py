"""`graphrag-assets index`, and the CPU seconds and peak memory of each of its stages, which go to a file as JSON.

python -m benchmarks.stage_cpu stages.json
"""

import json
import sys
import time
from pathlib import Path
from types import ModuleType

from graphrag_assets.assets import (
    communities,
    embeddings,
    index_batch,
    knowledge_graph,
    publication,
    reports,
)
from graphrag_assets.cli import main as command
from graphrag_assets.runtime.processes import peak_megabytes, restart_peak

STAGES = {
    "batch": (index_batch, "index_batch"),
    "graph": (knowledge_graph, "knowledge_graph"),
    "communities": (communities, "update_communities"),
    "reports": (reports, "update_reports"),
    "embeddings": (embeddings, "update_embeddings"),
    "publication": (publication, "update_publication"),
}


def main() -> None:
    costs = {stage: [0.0, 0.0] for stage in STAGES}
    for stage, (module, name) in STAGES.items():
        measure(costs[stage], module, name)
    command(["index"], standalone_mode=False)
    Path(sys.argv[1]).write_text(json.dumps(costs), encoding="utf-8")


def measure(cost: list[float], module: ModuleType, name: str) -> None:
    """Add to `cost` the CPU seconds of all threads during each call of the function `name`, and keep the highest MB."""
    work = getattr(module, name)

    def measured(*args: object, **kwargs: object) -> object:
        began = time.process_time()
        restart_peak()
        try:
            return work(*args, **kwargs)
        finally:
            cost[:] = cost[0] + time.process_time() - began, max(cost[1], peak_megabytes() or 0)

    setattr(module, name, measured)


if __name__ == "__main__":
    main()
