"""constraints.txt: one tested version of everything that pyproject.toml asks for, by name alone."""

import tomllib
from collections import defaultdict
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PINNED = (ROOT / "constraints.txt").read_text().splitlines()


def test_every_dependency_has_a_version_that_pyproject_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(r) for r in sum(project["optional-dependencies"].values(), project["dependencies"])]
    versions = defaultdict(list)
    for pin in map(Requirement, PINNED):
        versions[canonicalize_name(pin.name)] += [specifier.version for specifier in pin.specifier]
    for requirement in asked:
        name = canonicalize_name(requirement.name)
        if name != canonicalize_name(project["name"]):
            assert versions[name], f"make constraints: no version of {name}"
            assert all(requirement.specifier.contains(version) for version in versions[name]), requirement
