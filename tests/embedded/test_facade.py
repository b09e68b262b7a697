"""`graphrag_assets.embedded` is the one way into the embedded default."""

import ast
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
    assert {name for _, _, name in parts} <= set(embedded.__all__)
