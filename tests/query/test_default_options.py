"""Settings with defaults for the options of searches: an explicit option wins, a wrong one is an error with its remedy."""

import inspect
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphrag_assets.cli.main import main
from graphrag_assets.errors import SettingsError
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings

QUESTION = "Who commanded the Niagara, and who the Agamemnon?"


def test_defaults_hold_for_every_way_to_ask_and_explicit_options_win(
    index_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "basic": {"k": 2, "documents": ["Document 0"]},
        "local": {"top_k_entities": 1, "include_covariates": False},
        "planned": {"max_values": 2},
    }
    monkeypatch.setenv("GRAPHRAG_SEARCH_OPTIONS", json.dumps(options))
    with GraphRAG(index_file) as rag:
        found = [rag.basic(QUESTION), rag.search("basic", QUESTION), rag.ask('Where is "commanded the Niagara"?')]
        for answer in found:
            assert answer.method == "basic"
            assert set(answer.context["sources"]["document"]) == {"Document 0"}
        assert rag.context("basic", QUESTION).frames["sources"].height == 2
        assert rag.context("basic", QUESTION, k=1).frames["sources"].height == 1
        assert rag.context("local", QUESTION).frames["entities"].height == 1
        assert "claims" not in rag.local(QUESTION).context
        assert rag.local(QUESTION, top_k_entities=3, include_covariates=True).context["entities"].height == 3
        assert inspect.signature(rag.alocal).parameters["top_k_entities"].default == 1
        assert inspect.signature(rag.planned).parameters["max_values"].default == 2
        assert "k=2" in rag.basic.__doc__


def test_options_of_options_are_given_as_objects(index_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"drift": {"depth": 1, "local": {"top_k_entities": 2}}, "global": {"dynamic": {"threshold": 2}}}
    monkeypatch.setenv("GRAPHRAG_SEARCH_OPTIONS", json.dumps(options))
    with GraphRAG(index_file) as rag:
        assert {action.depth for action in rag.drift(QUESTION).actions} == {0, 1}
        assert "rating" in rag.global_("What happened?").usage


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            '{"local": {"top_k_entity": 1}}',
            "GRAPHRAG_SEARCH_OPTIONS, local: Unknown search option top_k_entity: did you mean",
        ),
        (
            '{"planned": {"max_value": 1}}',
            "GRAPHRAG_SEARCH_OPTIONS, planned: Unknown search option max_value: did you mean",
        ),
        ('{"lazy": {"budgets": 1}}', "GRAPHRAG_SEARCH_OPTIONS, lazy: Unknown search option budgets: did you mean"),
        (
            '{"basic": {"k": -1}}',
            "GRAPHRAG_SEARCH_OPTIONS, basic: The search option k is -1; it must be a whole number",
        ),
        (
            '{"drift": {"local": {"hop": 1}}}',
            "GRAPHRAG_SEARCH_OPTIONS, drift: Unknown search option hop: did you mean hops",
        ),
        ("[1]", "GRAPHRAG_SEARCH_OPTIONS='\\[1\\]': it must be a JSON object such as"),
        ("{level: 1}", "GRAPHRAG_SEARCH_OPTIONS=.*: it must be JSON such as"),
    ],
)
def test_a_wrong_default_is_an_error_that_names_the_setting(
    index_file: Path, monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    monkeypatch.setenv("GRAPHRAG_SEARCH_OPTIONS", value)
    with pytest.raises(SettingsError, match=message):
        GraphRAG(index_file)


def test_the_command_line_uses_the_defaults(index_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_SEARCH_OPTIONS", '{"global": {"community_level": 0}}')

    def reports(*options: str) -> list[int]:
        arguments = ["query", "global", "What happened?", "--json", "--index", str(index_file), *options]
        return sorted(json.loads(CliRunner().invoke(main, arguments).stdout)["context"]["reports"])

    assert reports() == [0, 1, 2]
    assert reports("--level", "1") == [1, 2, 3, 4]


def test_defaults_of_searches_are_no_settings_of_the_index() -> None:
    assert "search_options" not in Settings(search_options='{"local": {"hops": 2}}').as_rows()
