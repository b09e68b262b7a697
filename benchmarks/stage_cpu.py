"""`graphrag-assets index`, and the CPU seconds of each of its stages, which go to a file as JSON.

python -m benchmarks.stage_cpu stages.json
"""

import json
import sys
import time
from pathlib import Path
from types import ModuleType

from graphrag_assets.cli import main as command
from graphrag_assets.indexing import communities, embeddings, index_batch, merge_graph, publish, reports, stage_runner

STAGES = {
    "batch": (index_batch, "index_batch"),
    "graph": (merge_graph, "merge_graph"),
    "communities": (communities, "update_communities"),
    "reports": (reports, "update_reports"),
    "embeddings": (embeddings, "update_embeddings"),
    "checks between the stages": (stage_runner, "_verify"),
    "publication": (publish, "update_publication"),
}


def main() -> None:
    seconds = dict.fromkeys(STAGES, 0.0)
    for stage, (module, name) in STAGES.items():
        measure(seconds, stage, module, name)
    command(["index"], standalone_mode=False)
    Path(sys.argv[1]).write_text(json.dumps(seconds), encoding="utf-8")


def measure(seconds: dict[str, float], stage: str, module: ModuleType, name: str) -> None:
    """Add the CPU seconds of all threads during a call of the function `name` to those of `stage`."""
    work = getattr(module, name)

    def measured(*args: object, **kwargs: object) -> object:
        began = time.process_time()
        try:
            return work(*args, **kwargs)
        finally:
            seconds[stage] += time.process_time() - began

    setattr(module, name, measured)


if __name__ == "__main__":
    main()
