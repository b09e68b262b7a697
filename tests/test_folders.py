"""Imports between the rooms of the package lead one way, and the core does without the extras."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphrag_assets
from graphrag_assets import embedded

PACKAGE = Path(graphrag_assets.__file__).parent
ALWAYS = {"__version__", "contracts", "errors", "ids", "runtime", "settings", "text"}
"""What every room may import."""
LAYERS = {
    "text": {"text"},
    "runtime": {"runtime"},
    "contracts": {"contracts"},
    "pictures": {"pictures"},
    "reading": {"reading"},
    "store": {"store"},
    "llm": {"llm", "store"},
    "embedded": {"embedded", "store"},
    "pipeline": {"pipeline", "reading", "store", "embedded"},
    "query": {"query", "embedded", "llm", "store"},
    "integrations": {"integrations", "query"},
    "assets": {"assets", "embedded", "llm", "pictures", "pipeline", "query", "reading", "store"},
}
ROOTS = {
    "query/graphrag.py",
    "query/methods.py",
    "assets/index_definitions.py",
    "cli/main.py",
    "cli/init.py",
    "testing.py",
}
ROOTS |= {"assets/publication.py"}
"""Where the parts are put together: they know the extras."""


def imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@functools.cache
def imports() -> list[tuple[str, str]]:
    """Each file, and each module of the package that it imports."""
    return [
        (path.relative_to(PACKAGE).as_posix(), module.partition(".")[2] or name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for module, name in imports_of(path)
        if module.partition(".")[0] == PACKAGE.name
    ]


def test_the_core_does_without_the_extras():
    known = {(file, module) for file, module in imports() if module.startswith("extras") and file not in ROOTS}
    assert sorted(one for one in known if not one[0].startswith("extras/")) == []


@pytest.mark.parametrize("room", LAYERS)
def test_a_room_imports_what_is_below_it(room):
    above = {
        (file, module)
        for file, module in imports()
        if file.startswith(f"{room}/") and file not in ROOTS and module.split(".")[0] not in LAYERS[room] | ALWAYS
    }
    assert sorted(above) == []


def test_no_other_room_imports_an_inner_part_of_the_embedded_default():
    others = [path for path in PACKAGE.rglob("*.py") if "embedded" not in path.relative_to(PACKAGE).parts]
    found = [row for path in others for row in imports_of(path) if row[0].startswith("graphrag_assets.embedded")]
    assert {module for module, _ in found} == {"graphrag_assets.embedded"}
    assert {name for _, name in found} <= set(embedded.__all__)


def test_stages_and_what_calls_them_do_without_dagster():
    """What runs Dagster imports it inside functions, once something is due."""
    with_dagster = {f"{PACKAGE.name}.definitions"}
    files = {path.relative_to(PACKAGE).as_posix(): list(imports_of(path)) for path in PACKAGE.rglob("*.py")}

    def importing() -> set[str]:
        names = ("dagster", *with_dagster)
        return {file for file, found in files.items() if any(module.startswith(names) for module, _ in found)}

    while more := {f"{PACKAGE.name}.assets.{f[7:-3]}" for f in importing() if f.startswith("assets/")} - with_dagster:
        with_dagster |= more
    stages = ("scan", "index_batch", "knowledge_graph", "communities", "reports", "embeddings", "publication")
    assert with_dagster.isdisjoint(f"{PACKAGE.name}.assets.{stage}" for stage in stages)
    extras = {"extras/cost_preview/job", "extras/evaluation/job"}
    outside = {"cli/index", "cli/init", *extras, "__init__", "definitions"}
    assert {file for file in importing() if not file.startswith("assets/")} == {f"{name}.py" for name in outside}
