"""Imports between the folders of the package lead one way."""

from collections import defaultdict
from graphlib import TopologicalSorter

from tests.embedded.test_facade import PACKAGE, imports_of


def test_imports_between_folders_have_no_cycle():
    """A module beside the folders counts as one. Imports for types alone, and those inside functions, count too."""
    imported = defaultdict[str, set[str]](set)
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for module, name in imports_of(path):
            package, _, rest = module.partition(".")
            if package == PACKAGE.name and folder != "__init__":
                imported[folder].add(rest.partition(".")[0] or name)
    between = {folder: imports - {folder} for folder, imports in imported.items()}
    assert len(between) > 20
    order = list(TopologicalSorter(between).static_order())  # raises CycleError, which names the cycle
    assert order.index("llm") < order.index("indexing") < order.index("defs")
    assert "llm" not in between["embedded"]
    assert "embedded" not in between["llm"]


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


def test_only_commands_that_run_dagster_import_it_outside_defs():
    """Inside functions, as these do: docs/architecture.md says why."""
    dagster = ("dagster", f"{PACKAGE.name}.defs", f"{PACKAGE.name}.definitions")
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for module, _ in imports_of(path)
        if module.startswith(dagster) and path.parent.name != "defs"
    }
    commands = {f"cli/{name}.py" for name in ("dev", "doctor", "index_runs", "purge")}
    assert importing == commands | {"__init__.py", "definitions.py"}
