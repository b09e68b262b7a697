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


@pytest.mark.parametrize(("ending", "status"), [("sys.exit(3)", 3), ("sys.exit('so')", 1), ("1 / 0", 1)])
def test_exit_handlers_run_and_nothing_else_is_printed(tmp_path, ending, status):
    program = f"""
import atexit, sys, threading, time
from graphrag_assets import __main__, cli
def main():
    import duckdb
    duckdb.sql("SELECT 42").fetchall()
    atexit.register(print, "at the end")
    threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
    {ending}
    sys.exit(0)
cli.main = main
__main__.run()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == status
    assert ended.stdout == "thread\nat the end\n"
    errors = {"sys.exit('so')": "so", "1 / 0": "ZeroDivisionError: division by zero"}
    assert ended.stderr.splitlines()[-1:] == ([errors[ending]] if ending in errors else [])


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
