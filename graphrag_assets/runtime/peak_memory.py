"""Peak memory of a process within a stretch of time, where the system measures it (Linux)."""

import os
import re
from contextlib import suppress
from pathlib import Path


def restart_peak() -> None:
    """Reset the peak memory of this process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_megabytes(process: int | str = "self") -> int | None:
    """Maximum resident memory since the last `restart_peak` of the process, in MB; None where it is not measured."""
    files = Path("/proc") / str(process)
    if not os.access(files / "clear_refs", os.W_OK):
        return None
    found = re.search(r"VmHWM:\s*(\d+) kB", (files / "status").read_text(encoding="ascii", errors="replace"))
    return round(int(found[1]) * 1024 / 1e6) if found else None
