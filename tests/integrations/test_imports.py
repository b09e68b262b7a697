"""A retriever without its framework says which extra to install."""

import builtins
import importlib
import sys
from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("module", "extra", "package"),
    [("langchain", "langchain", "langchain_core"), ("llama_index", "llama-index", "llama_index")],
)
def test_a_missing_framework_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, package: str
) -> None:
    original: Callable[..., object] = builtins.__import__

    def without(name: str, *args: object, **more: object) -> object:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, f"graphrag_assets.integrations.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install -e '.\[{extra}\]'"):
        importlib.import_module(f"graphrag_assets.integrations.{module}")
