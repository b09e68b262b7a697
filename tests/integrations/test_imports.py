"""A retriever without its framework says which extra to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "extra", "package"),
    [("langchain", "langchain", "langchain_core"), ("llama_index", "llama-index", "llama_index")],
)
def test_a_missing_framework_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, package: str
) -> None:
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"graphrag_assets.integrations.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install -e '.\[{extra}\]'"):
        importlib.import_module(f"graphrag_assets.integrations.{module}")
