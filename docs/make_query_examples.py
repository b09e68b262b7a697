"""The generated parts of docs/query.md: examples of streamed answers, and what a question costs by each method.

    python docs/make_query_examples.py

Indexes the sample corpus into a temporary folder, then asks by four methods with the embedded default.
The prices are estimates for a chat model; nothing is sent to it.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_assets.query import GraphRAG, query_models  # noqa: E402
from graphrag_assets.store.publication_reader import CurrentPublication  # noqa: E402

PAGE = ROOT / "docs/query.md"
QUESTIONS = {
    "local": "Who commanded the Great Eastern when the cable of 1865 was lost?",
    "global_": "Why did the cable of 1858 fail, and what was learned from it?",
    "drift": "How did Thomson and Whitehouse disagree?",
    "basic": "What did a message cost?",
}
PRICED, MODEL = "What troubles did the cables meet at sea?", "openai/gpt-4.1-mini"
_MARKS = r"(<!-- example: {} -->\n```pycon\n)(.*?)(```\n<!-- end -->)"
_MAX_LINES = 5


def main() -> None:
    """Write the examples into the guide."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GRAPHRAG_DATA": folder, "GRAPHRAG_INPUT": str(ROOT / "data/input")}
        subprocess.run([sys.executable, "-m", "graphrag_assets", "index"], env=environment, check=True)
        outputs = {name: make(Path(folder) / "index") for name, make in EXAMPLES.items()}
        os.environ["GRAPHRAG_LEDGER_URL"] = f"sqlite:///{folder}/ledger.sqlite"
        text = with_prices(PAGE.read_text(encoding="utf-8"), Path(folder) / "index")
    for name, output in outputs.items():
        text = re.sub(_MARKS.format(name), lambda match: f"{match[1]}{output}{match[3]}", text, flags=re.DOTALL)  # noqa: B023
    PAGE.write_text(text, encoding="utf-8")


def with_prices(text: str, index: Path) -> str:
    """The guide with the prices of the methods, for an empty ledger."""
    model = query_models.answerer(CurrentPublication(index).reader(), MODEL)
    with GraphRAG(index, answerer=model) as rag:
        prices = {f"`rag.{price.method}`".replace("global", "global_"): price for price in rag.prices(PRICED)}
        prices |= {"`rag.local(…, hops=2)`": rag.prices(PRICED, local={"hops": 2})[0]}
    for heading, price in prices.items():
        requests = _between(f"{price.minimum.requests}", f"{price.maximum.requests}")
        dollars = _between(f"{price.minimum.cost_usd:.4f}", f"{price.maximum.cost_usd:.4f}")
        row = rf"(?m)^(\| {re.escape(heading)} \|[^|]*\|[^|]*\|).*$"
        text = re.sub(row, lambda match, cells=f" {requests} | {dollars} |": match[1] + cells, text)
    return text


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least}–{most}"


def shown(name: str) -> str:
    """The examples of this name as the guide has them."""
    match = re.search(_MARKS.format(name), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"docs/query.md has no examples {name!r}."
    return match[2]


def embedded(index: Path) -> str:
    """The four methods streaming with the embedded default."""
    rag = GraphRAG(index)
    return "\n".join(_example(rag, method, question) for method, question in QUESTIONS.items())


def _example(rag: GraphRAG, method: str, question: str) -> str:
    stream = getattr(rag, method).stream(question)
    pieces = list(stream)
    answer = stream.result
    lines = [line for part in "".join(pieces).split("\n") for line in textwrap.wrap(part, 116)]
    paragraphs = [*lines[:_MAX_LINES], *(["…"] if len(lines) > _MAX_LINES else [])]
    used = answer.total_usage
    summary = f"({len(pieces)} pieces; passages cited: {len(answer.citations)}; calls to a model: {used.calls})"
    call = f'>>> for piece in rag.{method}.stream("{question}"): print(piece, end="")'
    return "\n".join([call, *paragraphs, summary, ""])


EXAMPLES = {"embedded": embedded}

if __name__ == "__main__":
    main()
