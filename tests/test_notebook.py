"""docs/notebook.ipynb runs and prints its stored output."""

import os
import sys

import nbformat
import pytest

from tests.conftest import SAMPLE_INPUT
from tests.test_docs import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import make_notebook


@pytest.mark.extended
def test_notebook_runs_and_prints_its_stored_output(sample_index, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHRAG_DATA", str(sample_index.root))
    monkeypatch.setenv("GRAPHRAG_INPUT", str(SAMPLE_INPUT))
    stored = make_notebook.outputs(nbformat.read(make_notebook.NOTEBOOK, as_version=4))
    again = "Run `python docs/make_notebook.py` and look at what changed in docs/notebook.ipynb."
    assert make_notebook.outputs(make_notebook.ran()) == stored, again
    assert sum(map(bool, stored)) > 6
    assert ["a picture"] in stored
