"""Parameters, fields and classes are named by nouns: not by a bare participle or adjective, which leaves the noun out."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "graphrag_assets"
BARE = frozenset(
    "alone asked fitting found given kept known listed made moved own read shown taken".split()  # noqa: SIM905
)


def names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and name of each parameter, annotated field and class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            yield from ((node.lineno, one.arg) for one in every if one)
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, node.name.lower()
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            yield from ((field.lineno, field.id) for field in fields if isinstance(field, ast.Name))


def test_no_parameter_field_or_class_is_a_bare_participle() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in names_in(ast.parse(path.read_text(encoding="utf-8")))
        if name in BARE
    ]
    assert bare == []
