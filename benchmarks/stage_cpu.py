"""`graphrag-assets index`, and the CPU seconds and peak memory of each of its stages, which go to a file as JSON.

python -m benchmarks.stage_cpu stages.json
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphrag_assets.assets import corpus
from graphrag_assets.assets.stage import Stage
from graphrag_assets.cli import main as command
from graphrag_assets.runtime.processes import peak_megabytes, restart_peak

costs: dict[str, list[float]] = {}


def main() -> None:
    corpus.index_batch = measured(corpus.index_batch, lambda *_: "index_batch")
    Stage.update = measured(Stage.update, lambda stage, *_: stage.name)  # type: ignore[method-assign]
    command(["index"], standalone_mode=False)
    costs.pop("batch_state", None)  # it calls index_batch
    Path(sys.argv[1]).write_text(json.dumps(costs), encoding="utf-8")


def measured(work: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
    """`work`, which adds the CPU seconds of all threads to its costs, and keeps the highest MB."""

    def measure(*args: object, **kwargs: object) -> object:
        began, cost = time.process_time(), costs.setdefault(name_of(*args), [0.0, 0.0])
        restart_peak()
        try:
            return work(*args, **kwargs)
        finally:
            cost[:] = cost[0] + time.process_time() - began, max(cost[1], peak_megabytes() or 0)

    return measure


if __name__ == "__main__":
    main()
