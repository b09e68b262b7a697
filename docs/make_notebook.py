"""What docs/notebook.ipynb shows: its cells, run on the sample corpus.

python docs/make_notebook.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs/notebook.ipynb"


def main() -> None:
    """Run the notebook and store its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"GRAPHRAG_DATA": folder, "GRAPHRAG_INPUT": str(ROOT / "data/input")}
        subprocess.run([sys.executable, "-m", "graphrag_assets", "index"], check=True)
        nbformat.write(ran(), NOTEBOOK)


def ran() -> nbformat.NotebookNode:
    """The notebook with the outputs it has now, on the index of the settings, and nothing that tells the time."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # A slow kernel sends what a cell prints in several pieces.
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=120, resources=resources, coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell printed or gave, as text; a picture by its kind."""
    return [[_text(output) for output in cell.get("outputs", [])] for cell in notebook.cells]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    data = output.get("data", {})
    return "a picture" if "image/svg+xml" in data else str(data.get("text/plain", output))


if __name__ == "__main__":
    main()
