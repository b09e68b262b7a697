"""`graphrag_assets.embedded` is the one way into the embedded default."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import graphrag_assets
from graphrag_assets import embedded

PACKAGE = Path(graphrag_assets.__file__).parent


def imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def test_no_other_folder_imports_an_inner_part():
    others = [path for path in PACKAGE.rglob("*.py") if "embedded" not in path.relative_to(PACKAGE).parts]
    found = [
        (path.relative_to(PACKAGE).as_posix(), module, name) for path in others for module, name in imports_of(path)
    ]
    parts = [row for row in found if row[1].startswith("graphrag_assets.embedded")]
    assert len(parts) > 10
    assert {module for _, module, _ in parts} == {"graphrag_assets.embedded"}
    assert {name for _, _, name in parts} <= {*embedded._MODULES, "EXTRACTOR", "REPORTER", "EMBEDDING_MODEL"}


def test_importing_the_facade_loads_no_part_and_each_part_is_there():
    assert [name for name in embedded._MODULES if getattr(embedded, name) is None] == []
    code = (
        "import sys, graphrag_assets.embedded as e; print([m for m in sys.modules if m.startswith(e.__name__ + '.')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
