"""`graphrag-assets dev` with webserver and daemon, for tests and scripts that need real processes."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def dagster_dev(folder: Path, input_folder: Path, **more: str) -> Iterator[str]:
    """The Dagster UI of the index in `folder`; `more`: further settings. Yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHRAG_")}
    settings = {"DATA": str(folder), "INPUT": str(input_folder), **more}
    environment |= {"DAGSTER_HOME": ""} | {f"GRAPHRAG_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "graphrag_assets", "dev", "-p", str(port)]
    with (folder / "dagster-dev.log").open("w") as log:
        # Inherited from a shell's background job, SIGINT would be ignored.
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url)
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            raise


def _wait_for(url: str) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{url}/server_info", timeout=2)
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"{url} does not answer")
