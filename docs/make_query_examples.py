"""The generated parts of docs/query.md: examples of streamed answers.

    python docs/make_query_examples.py

Indexes the sample corpus into a temporary folder, then asks by two methods with the embedded default.
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

from graphrag_assets.query import GraphRAG  # noqa: E402

PAGE = ROOT / "docs/query.md"
QUESTIONS = {
    "local": "Who commanded the Great Eastern when the cable of 1865 was lost?",
    "basic": "What did a message cost?",
}
_MARKS = r"(<!-- example: {} -->\n```pycon\n)(.*?)(```\n<!-- end -->)"
_MAX_LINES = 5


def main() -> None:
    """Write the examples into the guide."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GRAPHRAG_DATA": folder, "GRAPHRAG_INPUT": str(ROOT / "data/input")}
        subprocess.run([sys.executable, "-m", "graphrag_assets", "index"], env=environment, check=True)
        outputs = {name: make(Path(folder) / "index") for name, make in EXAMPLES.items()}
    text = PAGE.read_text(encoding="utf-8")
    for name, output in outputs.items():
        text = re.sub(_MARKS.format(name), lambda match: f"{match[1]}{output}{match[3]}", text, flags=re.DOTALL)  # noqa: B023
    PAGE.write_text(text, encoding="utf-8")


def shown(name: str) -> str:
    """The examples of this name as the guide has them."""
    match = re.search(_MARKS.format(name), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"docs/query.md has no examples {name!r}."
    return match[2]


def embedded(index: Path) -> str:
    """The methods streaming with the embedded default."""
    rag = GraphRAG(index)
    return "\n".join(_example(rag, method, question) for method, question in QUESTIONS.items())


def _example(rag: GraphRAG, method: str, question: str) -> str:
    stream = rag.stream(method, question)
    pieces = list(stream)
    answer = stream.result
    lines = [line for part in "".join(pieces).split("\n") for line in textwrap.wrap(part, 116)]
    paragraphs = [*lines[:_MAX_LINES], *(["…"] if len(lines) > _MAX_LINES else [])]
    used = answer.total_usage
    number = f"{len(pieces)} piece{'' if len(pieces) == 1 else 's'}"
    summary = f"({number}; passages cited: {len(answer.citations)}; calls to a model: {used.calls})"
    call = f'>>> for piece in rag.stream("{method}", "{question}"): print(piece, end="")'
    return "\n".join([call, *paragraphs, summary, ""])


EXAMPLES = {"embedded": embedded}

if __name__ == "__main__":
    main()
