"""The command line as a process: exit status and exit handlers."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--version"], 0), (["bogus"], 2), (["sql", "--index", "no.duckdb"], 1)]
)
def test_the_process_ends_with_the_status_of_the_command(tmp_path, arguments, status):
    command = [sys.executable, "-m", "graphrag_assets", *arguments]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == status


@pytest.mark.parametrize("imported", ["graphrag_assets.cli", "duckdb"])
def test_ctrl_c_during_an_import_ends_the_process_without_a_traceback(tmp_path, imported):
    program = f"""
import os, signal, sys
from graphrag_assets import __main__
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == {imported!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["graphrag-assets", "status"]
__main__.run()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
