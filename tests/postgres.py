"""A new PostgreSQL cluster from Debian's packages, for tests that need a real server."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def cluster(address: str = "", network: str = "") -> Iterator[Path]:
    """A new PostgreSQL cluster; yields the folder of its socket. It trusts everyone and has the user `postgres`.

    With `address` it listens there, too, for the machines of `network`. Skips the test where PostgreSQL is not installed.
    """
    folder = _programs()
    if folder is None:
        pytest.skip("PostgreSQL (initdb) is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip("there is no user postgres to run PostgreSQL as")
    home = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 characters
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres", "postgres")
        options = f"-c listen_addresses='{address}' -k {home} -c fsync=off -c max_connections=300"
        as_postgres(folder / "initdb", "-D", home / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        if network:
            with (home / "data" / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {network} trust\n")
        as_postgres(folder / "pg_ctl", "-D", home / "data", "-l", home / "log", "-w", "-o", options, "start")
        try:
            yield home
        finally:
            as_postgres(folder / "pg_ctl", "-D", home / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def as_postgres(*command: str | Path, input_text: str | None = None) -> str:
    """Run a program of PostgreSQL, which refuses to be root; returns what it printed."""
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run([*map(str, command)], input=input_text, capture_output=True, text=True, cwd="/", **user)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def program(name: str) -> Path:
    """A program of PostgreSQL by its name, such as pg_dump."""
    folder = _programs()
    assert folder is not None
    return folder / name


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None
