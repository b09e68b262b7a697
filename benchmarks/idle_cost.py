"""What `graphrag-assets dev` takes while nothing changes: `python -m benchmarks.idle_cost`.

Indexes the sample corpus in a temporary folder, starts the UI and the daemon, and measures all of their processes for
two minutes. Memory that several processes share counts once (proportional set size).
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

INPUT = Path(__file__).resolve().parents[1] / "data" / "input"
START_SECONDS, MEASURED_SECONDS = 75.0, 120.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(INPUT, Path(folder) / "input")
        environment = os.environ | {"GRAPHRAG_DATA": folder}
        command = [sys.executable, "-m", "graphrag_assets"]
        subprocess.run([*command, "index"], env=environment, check=True, stdout=subprocess.DEVNULL)
        program = subprocess.Popen(
            [*command, "dev", "-p", "3470"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            time.sleep(START_SECONDS)
            before, started = _cpu_seconds(program.pid), time.monotonic()
            time.sleep(MEASURED_SECONDS)
            after, seconds = _cpu_seconds(program.pid), time.monotonic() - started
            share = sum(used - before.get(process, 0.0) for process, used in after.items()) / seconds
            memory = [(process.memory_full_info(), process.cmdline()) for process in after]
            print(f"{len(after)} processes: {share:.1%} of a core, {sum(m.pss for m, _ in memory) / 1e6:.0f} MB")
            for used, command in memory:
                print(f"  {used.rss / 1e6:.0f} MB with shared pages: {' '.join(command[2:4])}")
        finally:
            program.send_signal(signal.SIGINT)
            program.wait(60)


def _cpu_seconds(pid: int) -> dict[psutil.Process, float]:
    used = {}
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            used[process] = sum(process.cpu_times()[:2])
    return used


if __name__ == "__main__":
    main()
