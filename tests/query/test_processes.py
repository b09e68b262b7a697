"""Questions from forked processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.model_index import PROJECT

_FORKED = """
import multiprocessing, sys
from graphrag_assets.query import GraphRAG

path, kind, first = sys.argv[1:]

def ask(path):
    try:
        return str(GraphRAG(path).local("Who was the captain?").citations is not None)
    except Exception as error:
        return str(error)

if __name__ == "__main__":
    if first == "asked":
        ask(path)
    with multiprocessing.get_context(kind).Pool(1) as pool:
        print(pool.apply_async(ask, (path,)).get(timeout=60))
    print(ask(path))
"""


@pytest.mark.extended
def test_a_fork_of_a_process_that_has_asked_raises_an_error_that_names_spawn(index_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_FORKED)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
    environment = plain | {"GRAPHRAG_DATA": str(tmp_path), "PYTHONPATH": str(PROJECT)}

    def printed(*how: str) -> list[str]:
        command = [sys.executable, str(script), str(index_file), *how]
        return subprocess.check_output(command, env=environment, text=True, timeout=120).splitlines()

    in_child, in_parent = printed("fork", "asked")
    assert "spawn" in in_child
    assert in_parent == "True"
    assert printed("spawn", "asked") == ["True", "True"]
    assert printed("fork", "not asked") == ["True", "True"]
