"""LangChain's own tests of a retriever, and the documents that ours returns."""

import os
import subprocess
from pathlib import Path

import pytest

from ..conftest import Project
from ..environments import ROOT, environment_with

STANDARD_TESTS = Path(__file__).with_name("langchain_standard.py")


@pytest.mark.extended
def test_it_passes_the_standard_tests_of_langchain(sample_index: Project, shared_folder: Path) -> None:
    python = environment_with(shared_folder / "langchain", "langchain-core", "langchain-tests")
    plugins = [f"-p no:{name}" for name in ("cacheprovider", "xdist", "hypothesispytest", "anyio")]
    command = [str(python), "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(ROOT), *plugins]
    command += ["--asyncio-mode=auto", "--disable-socket", "--allow-unix-socket", str(STANDARD_TESTS)]
    environment = {**os.environ, "GRAPHRAG_DATA": str(sample_index.root)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "8 passed" in run.stdout, run.stdout
