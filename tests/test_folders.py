"""Imports between the rooms of the package lead one way, and the core does without the extras."""

from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from tests.embedded.test_facade import PACKAGE, imports_of

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
    "query/choice.py",
    "assets/index_definitions.py",
    "cli/main.py",
    "cli/init.py",
    "testing.py",
}
ROOTS |= {"assets/publish.py"}
"""Where the parts are put together: they know the extras."""


def imports() -> Iterator[tuple[str, str]]:
    """Each file, and each module of the package that it imports."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for module, name in imports_of(path):
            package, _, rest = module.partition(".")
            if package == PACKAGE.name:
                yield path.relative_to(PACKAGE).as_posix(), rest or name


def test_the_core_does_without_the_extras():
    known = {(file, module) for file, module in imports() if module.startswith("extras") and file not in ROOTS}
    assert sorted(one for one in known if not one[0].startswith("extras/")) == []


def test_extras_know_few_others():
    """Purging writes the explorer's page again, and the server shows it."""
    between = {
        (file.split("/")[1], module.split(".")[1])
        for file, module in imports()
        if file.startswith("extras/") and module.startswith("extras.")
    }
    assert {(one, other) for one, other in between if one != other} == {
        ("purge", "explorer"),
        ("server", "explorer"),
    }


@pytest.mark.parametrize("room", LAYERS)
def test_a_room_imports_what_is_below_it(room):
    above = {
        (file, module)
        for file, module in imports()
        if file.startswith(f"{room}/") and file not in ROOTS and module.split(".")[0] not in LAYERS[room] | ALWAYS
    }
    assert sorted(above) == []


def test_few_modules_stand_beside_the_rooms():
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_imports_between_the_modules_of_query_have_no_cycle():
    imported = defaultdict[str, set[str]](set)
    query = f"{PACKAGE.name}.query"
    modules = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    for path, module in modules.items():
        if module.startswith(query) and path.name != "__init__.py":
            for source, name in imports_of(path):
                target = f"{source}.{name}" if f"{source}.{name}" in modules.values() else source
                imported[module] |= {target} if target.startswith(query) else set()
    assert len(imported) > 20
    list(TopologicalSorter(imported).static_order())  # raises CycleError, which names the cycle


def test_stages_and_what_calls_them_do_without_dagster():
    """What runs Dagster imports it inside functions, once something is due."""
    with_dagster = {f"{PACKAGE.name}.definitions"}
    files = {path.relative_to(PACKAGE).as_posix(): list(imports_of(path)) for path in PACKAGE.rglob("*.py")}

    def importing() -> set[str]:
        names = ("dagster", *with_dagster)
        return {file for file, found in files.items() if any(module.startswith(names) for module, _ in found)}

    while more := {f"{PACKAGE.name}.assets.{f[7:-3]}" for f in importing() if f.startswith("assets/")} - with_dagster:
        with_dagster |= more
    stages = ("scan", "index_batch", "knowledge_graph", "communities", "reports", "embeddings", "candidates", "publish")
    assert with_dagster.isdisjoint(f"{PACKAGE.name}.assets.{stage}" for stage in stages)
    extras = {"extras/cost_preview/job", "extras/evaluation/job"}
    outside = {"cli/dev", "cli/index", "cli/index_runs", *extras, "__init__", "definitions"}
    assert {file for file in importing() if not file.startswith("assets/")} == {f"{name}.py" for name in outside}
