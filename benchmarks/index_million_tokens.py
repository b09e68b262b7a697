"""Seconds and peak memory of each stage, for growing corpora, on the embedded default.

    python benchmarks/index_million_tokens.py                          # 250,000, 500,000 and 1,000,000 tokens
    python benchmarks/index_million_tokens.py --tokens 1000000 --text novel.txt --text report.md

The corpus is real text (data/input, or the files given) repeated as often as needed. Each repetition has names of
its own, so that the graph grows as it does with new documents: in every word that occurs capitalized only, letters
are exchanged by a rule that depends on the repetition.
"""

import argparse
import os
import re
import string
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from graphrag_assets.assets.checks import CHECKS, offending_rows
from graphrag_assets.assets.communities import detect_communities
from graphrag_assets.assets.embeddings import embed_texts
from graphrag_assets.assets.index import Index
from graphrag_assets.assets.index_batch import index_batch
from graphrag_assets.assets.knowledge_graph import knowledge_graph
from graphrag_assets.assets.publication import publication
from graphrag_assets.assets.reports import write_community_reports
from graphrag_assets.assets.scan import scan_input
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings
from graphrag_assets.text.words import count_tokens

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS_PER_BATCH = 20
COUNTS = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM {name}) AS {name}"
    for name in ("text_units", "entities", "relationships", "communities", "covariates")
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, action="append", help="corpus size; may be given several times")
    parser.add_argument("--text", type=Path, action="append", help="text to repeat; default: data/input")
    options = parser.parse_args()
    console = Console()
    for tokens in options.tokens or [250_000, 500_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAPHRAG_DATA"] = folder
            written = write_corpus(Path(folder) / "input", tokens, options.text or sample_files())
            console.print(measure(written))


def sample_files() -> list[Path]:
    return sorted(path for path in (ROOT / "data/input").rglob("*") if path.suffix in {".md", ".txt"})


def write_corpus(folder: Path, tokens: int, texts: list[Path]) -> int:
    """Batches of documents with at least `tokens` tokens in all; returns how many there are."""
    written = 0
    for number, text in enumerate(repetitions([path.read_text(encoding="utf-8") for path in texts])):
        batch = folder / f"batch-{number // DOCUMENTS_PER_BATCH:03}"
        batch.mkdir(parents=True, exist_ok=True)
        (batch / f"document-{number:04}.md").write_text(text, encoding="utf-8")
        written += count_tokens([text])[0]
        if written >= tokens:
            return written
    raise SystemExit("There is no text to repeat.")


def repetitions(texts: list[str]) -> Iterator[str]:
    """The texts again and again, with other names each time."""
    words = set(re.findall(r"\w+", " ".join(texts)))
    names = {word for word in words if word[:1].isupper() and word.lower() not in words and len(word) > 3}
    for repetition in range(10_000):
        renamed = {name: rename(name, repetition) for name in names}
        for text in texts:
            yield re.sub(r"\w+", lambda match, new=renamed: new.get(match.group(), match.group()), text)


def rename(name: str, repetition: int) -> str:
    """`name` with its consonants moved along the alphabet by `repetition` places, and marked with its round."""
    consonants = "".join(c for c in string.ascii_lowercase if c not in "aeiou")
    places = repetition % len(consonants)
    table = str.maketrans(consonants, consonants[places:] + consonants[:places])
    mark = (
        "".join("aeiou"[int(digit)] for digit in np.base_repr(repetition // len(consonants), 5)) if repetition else ""
    )
    return name[0] + name[1:].translate(table) + mark


class MemorySampler(threading.Thread):
    """Resident memory of this process, every 20 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, int]] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self.stopped.wait(0.02):
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * page
            self.samples.append((time.time(), resident))

    def peak(self, start: float, end: float) -> int:
        return max((size for at, size in self.samples if start <= at <= end), default=0)


def measure(tokens: int) -> Table:
    """Index the corpus at GRAPHRAG_DATA by calling the stages; a table of them."""
    sampler = MemorySampler()
    sampler.start()
    seconds: dict[str, float] = defaultdict(float)
    memory: dict[str, int] = defaultdict(int)
    started = time.time()
    for stage, work in stages(Index.from_environment(), uuid.uuid4().hex):
        began = time.time()
        work()
        seconds[stage] += time.time() - began
        memory[stage] = max(memory[stage], sampler.peak(began, time.time()))
    total = time.time() - started
    sampler.stopped.set()
    rows = GraphRAG(Settings.load().index_folder).sql(COUNTS).row(0, named=True)
    counts = ", ".join(f"{n:,} {name}" for name, n in rows.items())
    table = Table("stage", "seconds", "peak MB", title=f"{tokens:,} tokens: {counts}")
    for stage, value in seconds.items():
        table.add_row(stage, f"{value:.1f}", f"{memory[stage] / 1e6:,.0f}")
    table.add_row("in all", f"{total:.1f}", f"{max(memory.values()) / 1e6:,.0f}")
    return table


def stages(index: Index, run_id: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """The stages of a first run by name, in order; `index_batch` once per batch."""
    yield "scan_input", partial(scan_input, index)
    for batch, *_ in index.input.list_batches():
        yield "index_batch", partial(index_batch, index, batch, index.models(batch, run_id), run_id)
    for stage in (knowledge_graph, detect_communities, write_community_reports, embed_texts):
        yield stage.name, partial(stage.update, index, run_id)
    yield "checks", partial(offending_rows, CHECKS, index)
    yield publication.name, partial(publication.update, index, run_id)


if __name__ == "__main__":
    main()
