"""Environments with packages that stay out of this one: their pytest plugins, or their size."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .conftest import build_once

ROOT = Path(__file__).resolve().parents[1]


def environment_with(folder: Path, *packages: str) -> Path:
    """The Python of a new environment with these packages, and with those of this one for whatever they leave out.

    The test is skipped if the packages cannot be installed.
    """

    def install(target: Path) -> None:
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(target)], check=True)
        command = [*uv, "pip", "install", "--quiet", "--python", str(target), *packages]
        installed = subprocess.run(command, capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"{' and '.join(packages)} cannot be installed from the package index: {installed.stderr}")
        (site,) = target.glob("lib/python*/site-packages")
        (site / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")

    return build_once(folder, install) / "bin" / "python"
