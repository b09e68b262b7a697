"""Does GraphRAG read what `publications export graphrag` writes? Its own local search builds a context from it.

    python benchmarks/graphrag_reads_export.py --venv ~/graphrag-venv --question "Who is Scrooge?"

The publication (of GRAPHRAG_DATA, or --index) is exported to a temporary folder. GraphRAG runs in a virtual
environment of its own, which is made where there is none (`pip install graphrag`, about 2 GB): it is no dependency of
this project. Its tables are read by its own adapters, and its `LocalSearchMixedContext` and
`GlobalCommunityContext` build contexts from them. The vectors are those of the export, and the question is embedded
by the index's own model: index with GRAPHRAG_EMBEDDING_MODEL=onnx:bge-small, and no network is needed.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_assets.extras.interop.exporter import export
from graphrag_assets.query.query_models import embedder
from graphrag_assets.settings import Settings
from graphrag_assets.store.publication_reader import CurrentPublication

READER = Path(__file__).with_name("graphrag_reader.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, required=True, help="virtual environment with graphrag; made if missing")
    parser.add_argument("--question", default="Who commanded the Great Eastern?")
    parser.add_argument("--index", type=Path, help="index folder or published file")
    options = parser.parse_args()
    print(json.dumps(contexts(python_of(options.venv), options.question, options.index), indent=2))


def python_of(folder: Path) -> Path:
    """The Python of the virtual environment, with graphrag installed in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "graphrag>=3,<4"], check=True)
    return python


def contexts(python: Path, question: str, index: Path | None = None) -> dict[str, object]:
    """What GraphRAG says of its contexts: rows by section, characters, and the titles it selected."""
    reader = CurrentPublication(index).reader()
    if reader.embedding is None:
        sys.exit("The index has no vectors. Index with GRAPHRAG_EMBEDDING_MODEL=onnx:bge-small.")
    model, _ = reader.embedding
    with TemporaryDirectory() as folder:
        rows = export("graphrag", Path(folder), index)
        vector = [float(x) for x in embedder(Settings.load(), model)([question])[0]]
        (Path(folder) / "question.json").write_text(json.dumps({"question": question, "vector": vector}))
        environment = {**os.environ, "TIKTOKEN_CACHE_DIR": _encodings(python), "PYTHONPATH": ""}
        done = subprocess.run(
            [python, str(READER), folder], capture_output=True, text=True, env=environment, check=False
        )
    if done.returncode:
        sys.exit(done.stderr)
    return {"exported": rows, **json.loads(done.stdout.strip().splitlines()[-1])}


def _encodings(python: Path) -> str:
    """litellm ships the token encodings that tiktoken would load from the network."""
    code = "import importlib.util; print(importlib.util.find_spec('litellm').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return str(Path(found) / "litellm_core_utils" / "tokenizers")


if __name__ == "__main__":
    main()
