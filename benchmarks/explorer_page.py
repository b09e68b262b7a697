"""The explorer's page for growing graphs: seconds to write, size, seconds to open, and how fluid its map is.

    python -m benchmarks.explorer_page                                          # 1,000 and 5,000 entities
    python -m benchmarks.explorer_page --entities 50000 --screenshot map.png    # larger than the map: by community

The corpus is generated: a graph with planted communities, each relationship a sentence or more, each community a
document. It is indexed as any other, on the embedded default, then opened in Chromium. A frame is the time between
two drawings while the map moves, or from an entity's selection to the drawing of it; "script" is the page's own part,
"CPU" what all of the browser's processes use for it. Without a graphics card (`--software`, and wherever there is
none) Chromium draws on the processor, which is much slower than what people see.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.community_stability import plant, some_edges
from graphrag_assets.cli import main as command
from graphrag_assets.extras.explorer.page import write_page
from tests.browsers import DRAWING, chromium

EDGES_PER_ENTITY = 4
DOCUMENTS_PER_FILE = 200
_SENTENCES = (
    "{a} wrote to {b} about the {x} and the {y}.",
    "In the {x} of that year {a} worked with {b}.",
    "It was {a} who showed {b} the {x}.",
    "The {x} of {b} was made by {a} for the {y}.",
)
_NOUNS = [
    "survey",
    "engine",
    "letter",
    "account",
    "journey",
    "machine",
    "signal",
    "contract",
    "voyage",
    "factory",
    "bridge",
    "report",
]
_MOVE = """
async (states) => {
  const { renderer } = explorer.map, frames = [], script = [];
  let begun = 0, last = null;
  const before = () => { begun = performance.now(); };
  const after = () => {
    const now = performance.now();
    script.push(now - begun);
    if (last !== null) frames.push(now - last);
    last = now;
  };
  renderer.on("beforeRender", before).on("afterRender", after);
  for (const state of states) await renderer.getCamera().animate(state, { duration: 2000, easing: "linear" });
  renderer.off("beforeRender", before).off("afterRender", after);
  return [frames, script];
}
"""
_SELECT = """
async () => {
  const frames = [], script = [];
  for (const entity of explorer.model.entities.slice(0, 8)) {
    const begun = performance.now();
    location.hash = `#entity=${entity.number}`;
    await new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
    script.push(performance.now() - begun);
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    frames.push(performance.now() - begun);
  }
  return [frames, script];
}
"""


class Times(NamedTuple):
    """Milliseconds of each frame, of the script in it, and of all processors for a frame."""

    frames: list[float]
    script: list[float]
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, action="append", help="size of the graph; may be repeated")
    parser.add_argument("--index", type=Path, help="measure the page of this index instead")
    parser.add_argument("--keep", type=Path, help="keep the index and the page in this folder")
    parser.add_argument("--software", action="store_true", help="draw on the processor even if there is a card")
    parser.add_argument("--screenshot", type=Path, help="a picture of the last page's map")
    options = parser.parse_args()
    table = Table()
    for name in (
        "entities",
        "relationships",
        "written in",
        "MB",
        "opened in",
        "action",
        "frame",
        "95 %",
        "script",
        "CPU",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for entities in [0] if options.index else options.entities or [1_000, 5_000]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep or Path(scratch)
            index = options.index or make_index(folder, entities)
            started = time.perf_counter()
            page = write_page(index, folder / "explorer.html")
            written = time.perf_counter() - started
            opened, actions = measure(page.path, options.software, options.screenshot)
            counts = [f"{page.content.rows[name][1]:,}" for name in ("entities", "relationships")]
            facts = [*counts, f"{written:.1f} s", f"{page.bytes / 1e6:.1f}", f"{opened:.1f} s"]
            for action, times in actions.items():
                middle, slow = np.percentile(times.frames, [50, 95])
                script = np.median(times.script)
                table.add_row(
                    *facts, action, f"{middle:.0f} ms", f"{slow:.0f} ms", f"{script:.1f} ms", f"{times.cpu:.0f} ms"
                )
                facts = [""] * len(facts)
    Console(width=120).print(table)


def make_index(folder: Path, entities: int) -> Path:
    """The index folder of a generated corpus with about so many entities."""
    write_corpus(folder / "input", entities)
    os.environ |= {"GRAPHRAG_DATA": str(folder), "GRAPHRAG_INPUT": str(folder / "input")}
    os.environ.pop("DAGSTER_HOME", None)
    command(["index"], standalone_mode=False)
    return folder / "index"


def write_corpus(folder: Path, entities: int) -> None:
    """A document per planted community: the sentences of the relationships that begin in it."""
    rng = np.random.default_rng(1)
    planted = plant(rng, entities)
    edges = some_edges(rng, planted, EDGES_PER_ENTITY * entities)
    names = invented_names(rng, entities)
    documents: dict[int, list[str]] = {}
    for number, ((a, b), weight) in enumerate(zip(edges.ends.tolist(), edges.weights.tolist(), strict=True)):
        said = documents.setdefault(int(planted.community[a]), [])
        for again in range(int(min(weight, 3))):
            nouns = dict(zip("xy", rng.choice(_NOUNS, 2, replace=False), strict=True))
            said.append(_SENTENCES[(number + again) % len(_SENTENCES)].format(a=names[a], b=names[b], **nouns))
    for community, said in documents.items():
        file = folder / f"part-{community // DOCUMENTS_PER_FILE:03}" / f"community-{community:05}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        paragraphs = [" ".join(said[i : i + 8]) for i in range(0, len(said), 8)]
        file.write_text("\n\n".join(paragraphs) + "\n")


def invented_names(rng: np.random.Generator, count: int) -> list[str]:
    """Distinct names of two words that no dictionary has."""
    syllables = np.array([c + v for c in "bdfgklmnprstvz" for v in "aeiou"])
    made: dict[str, None] = {}
    while len(made) < count:
        first, last = (("".join(rng.choice(syllables, 3))).capitalize() for _ in range(2))
        made[f"{first} {last}n"] = None
    return list(made)


def measure(path: Path, software: bool, screenshot: Path | None) -> tuple[float, dict[str, Times]]:
    """Seconds until the page can be used, and the times of what is done then."""
    with chromium(DRAWING if software else ["--no-sandbox", "--enable-unsafe-swiftshader"]) as browser:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        started = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("[data-ready]", timeout=120_000)
        opened = time.perf_counter() - started
        page.wait_for_timeout(500)
        if screenshot:
            page.screenshot(path=screenshot)
        pan = [{"x": 0.3, "y": 0.4, "ratio": 0.8}, {"x": 0.7, "y": 0.6, "ratio": 0.8}]
        zoom = [{"x": 0.5, "y": 0.5, "ratio": 0.1}, {"x": 0.5, "y": 0.5, "ratio": 1}]
        actions = {"pan": (_MOVE, pan), "zoom": (_MOVE, zoom), "select": (_SELECT, None)}
        times = {}
        for name, (script, argument) in actions.items():
            before = cpu_seconds()
            frames, scripts = page.evaluate(script, argument)
            times[name] = Times(frames, scripts, 1000 * (cpu_seconds() - before) / len(scripts))
    return opened, times


def cpu_seconds() -> float:
    """Processor time that the browser's processes have used; drawing, without a graphics card, is among it."""
    return sum(sum(process.cpu_times()[:2]) for process in psutil.Process().children(recursive=True))


if __name__ == "__main__":
    main()
