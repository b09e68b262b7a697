"""The examples of streamed answers in the README: real output, written between their marks.

    python docs/make_query_examples.py

Indexes the sample corpus into a temporary folder, then asks by all four methods: on the embedded default, and by a
model over HTTP, for which the test server stands in (its "model" quotes the first sentences of what it is given).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_assets.query import GraphRAG  # noqa: E402
from tests.openai_server import running  # noqa: E402

README = ROOT / "README.md"
QUESTIONS = {
    "local": "Who commanded the Great Eastern when the cable of 1865 was lost?",
    "global_": "What did the makers of the cables learn from failure?",
    "drift": "How did Thomson and Whitehouse disagree?",
    "basic": "What did a message cost?",
}
_ROW = re.compile(r"^(\d+)\|(.*?)(?=^\d+\||^-----|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?] )[A-Z][^.!?|#\n\[]{30,160}[a-z]{3}[.!?](?=\s|$)")
_MOST_LINES = 5


def main() -> None:
    """Write the examples into the README."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GRAPHRAG_DATA": folder, "GRAPHRAG_INPUT": str(ROOT / "data/input")}
        subprocess.run([sys.executable, "-m", "graphrag_assets", "index"], env=environment, check=True)
        examples = {"embedded": embedded(Path(folder) / "index"), "model": by_model(Path(folder) / "index")}
    text = README.read_text(encoding="utf-8")
    for name, output in examples.items():
        text = re.sub(_between(name), lambda match, o=output: f"{match[1]}{o}{match[3]}", text, flags=re.DOTALL)
    README.write_text(text, encoding="utf-8")


def shown(name: str) -> str:
    """The example of that name as the README has it."""
    match = re.search(_between(name), README.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"The README has no example {name}."
    return match[2]


def embedded(index: Path) -> str:
    """The four methods streaming without a model."""
    return _asked(GraphRAG(index))


def by_model(index: Path) -> str:
    """The four methods streaming from a model over HTTP."""
    with running(content=_content) as server, _environment(server.url, index):
        return _asked(GraphRAG(index))


@contextmanager
def _environment(url: str, index: Path) -> Iterator[None]:
    before = dict(os.environ)
    os.environ |= {
        "GRAPHRAG_CHAT_MODEL": "openai/stand-in",
        "GRAPHRAG_CHAT_BASE_URL": url,
        "GRAPHRAG_DATA": str(index.parent),
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _asked(rag: GraphRAG) -> str:
    return "\n".join(_example(rag, method, question) for method, question in QUESTIONS.items())


def _example(rag: GraphRAG, method: str, question: str) -> str:
    stream = getattr(rag, method).stream(question)
    pieces = list(stream)
    answer = stream.result
    lines = [line for part in "".join(pieces).split("\n") for line in textwrap.wrap(part, 116)]
    paragraphs = [*lines[:_MOST_LINES], *(["…"] if len(lines) > _MOST_LINES else [])]
    used = answer.total_usage
    summary = f"({len(pieces)} pieces; passages cited: {len(answer.citations)}; calls to a model: {used.calls})"
    call = f'>>> for piece in rag.{method}.stream("{question}"): print(piece, end="")'
    return "\n".join([call, *paragraphs, summary, ""])


def _content(body: dict[str, Any]) -> str:
    """What the stand-in says: sentences of the rows that it was given, each with its row."""
    message = body["messages"][-1]["content"]
    if "-----Note" in message:  # the end of a global or DRIFT search
        return "\n".join(re.findall(r"^.*\[Data: .*\]$", message, re.MULTILINE)[:3])
    table = "Sources" if "-----Sources-----" in message else "Reports"
    rows = _ROW.findall(message.partition(f"-----{table}-----")[2])
    asked = set(re.findall(r"\w{5,}", message.rpartition("Question: ")[2].casefold()))
    said = [(int(number), sentence) for number, text in rows for sentence in _SENTENCE.findall(text)]
    said.sort(key=lambda pair: (-len(asked & set(re.findall(r"\w{5,}", pair[1].casefold()))), pair))
    said = list({sentence: (number, sentence) for number, sentence in reversed(said)}.values())[::-1]
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("name")
    if schema is None:
        return " ".join(f"{sentence} [Data: {table} ({number})]" for number, sentence in said[:3]) or "No idea."
    points = [
        {"description": f"{sentence} [Data: {table} ({number})]", "score": 90 - place}
        for place, (number, sentence) in enumerate(said[:3])
    ]
    questions = [{"question": f"What is known of this: {sentence}", "score": 50} for _, sentence in said[:1]]
    return json.dumps({"points": points, "follow_ups": questions})


def _between(name: str) -> str:
    return rf"(<!-- example: {name} -->\n```pycon\n)(.*?)(```\n<!-- end -->)"


if __name__ == "__main__":
    main()
