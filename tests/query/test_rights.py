"""What somebody may not see is the same as what does not exist, and a filter that hides nothing changes nothing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_assets.errors import InvalidOption
from graphrag_assets.query import Callbacks, DriftOptions, Failure, Filter, GraphRAG
from graphrag_assets.testing import index_of


def _note(title: str, text: str, **metadata: Any) -> str:
    return json.dumps({"title": title, "text": text, **metadata})


DOCUMENTS = {
    "public/one.json": _note("Gauge notes", "The Puffin Gauge was built by Ada Byron in Leeds.", level=1, team="ops"),
    "public/two.json": _note("Tide notes", "Ada Byron tested the Puffin Gauge with Karl Benz in 1901.", level=1),
    "public/three.json": _note("Pump notes", "Karl Benz sold the Puffin Gauge to Leeds.", level=1.5, date="1901-05-02"),
    "hr/four.json": _note("Zebulon memorandum", "The Puffin Gauge pays Zebulon Pike.", level=True, secret="yes"),
    "hr/five.json": _note("Salary list", "Zebulon Pike of Leeds owns the Puffin Gauge.", level="1st", team="hr"),
}
QUESTION = "Who has the Puffin Gauge?"


@pytest.fixture(scope="module")
def rag() -> Iterator[GraphRAG]:
    with index_of(DOCUMENTS) as rag:
        yield rag


def answered(rag: GraphRAG, method: str, rights: Filter, **limits: Any) -> tuple[str, list[str], list[str]]:
    answer = rag.search(method, QUESTION, rights=rights, **limits)
    return answer.answer, [citation.document for citation in answer.citations], [f.error for f in answer.errors]


RIGHTS = [Filter(batches=["public"]), Filter(metadata={"level": [1, 1.5]}), Filter(documents=["Gauge notes", "gone"])]


@pytest.mark.parametrize("rights", RIGHTS, ids=repr)
@pytest.mark.parametrize(
    ("hidden", "absent"),
    [
        ({"documents": ["Zebulon memorandum"]}, {"documents": ["Absent memorandum"]}),
        ({"batches": ["hr"]}, {"batches": ["rh"]}),
        ({"metadata": {"team": "hr"}}, {"metadata": {"team": "rh"}}),
        ({"metadata": {"secret": "yes"}}, {"metadata": {"absent": "yes"}}),
        ({"metadata": {"level": True}}, {"metadata": {"level": False}}),
        ({"relationship_types": ["OWNS"]}, {"relationship_types": ["XWNS"]}),
    ],
    ids=repr,
)
def test_hidden_and_absent_names_are_ignored_alike(rag: GraphRAG, rights: Filter, hidden: Any, absent: Any) -> None:
    words = {repr(str(one)).strip("'[]"): "X" for limits in (hidden, absent) for one in _leaves(limits)}
    for method in ("local", "basic"):
        found = [answered(rag, method, rights, **limits) for limits in (hidden, absent)]
        for errors in (found[0][2], found[1][2]):
            assert len(errors) == 1
            assert not any(title in errors[0] for title in ("Gauge notes", "Salary list", "public"))
        (one, other) = (str(each).replace("secret", "absent") for each in found)
        for word in words:
            one, other = one.replace(word, "X"), other.replace(word, "X")
        assert one == other
        if "relationship_types" not in hidden:
            assert found[0][1] == []


def _leaves(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return [leaf for value in given.values() for leaf in _leaves(value)]
    return [leaf for value in given for leaf in _leaves(value)] if isinstance(given, list) else [given]


def test_names_that_are_gone_do_not_hide_those_that_are_there(rag: GraphRAG) -> None:
    for filter in (Filter(batches=["public", "gone"]), Filter(documents=["Gauge notes", "Tide notes", "gone"])):
        answer = rag.local(QUESTION, filter=filter)
        assert {citation.document for citation in answer.citations} >= {"Gauge notes"}
        assert [failure.error.count("gone") for failure in answer.errors] == [1]
        silent = rag.local(QUESTION, rights=filter)
        assert (silent.errors, silent.answer) == ([], answer.answer)
    told: list[str] = []

    class Told(Callbacks):
        def on_error(self, failure: Failure) -> None:
            told.append(failure.error)

    assert rag.retrieve(QUESTION, batches=["gone"], callbacks=Told()).is_empty()
    assert "'gone'" in told[0]
    dated = rag.basic(QUESTION, rights=Filter(documents=["Gauge notes"]), as_of="1999")
    assert (dated.citations, len(dated.errors)) == ([], 1)


@pytest.mark.parametrize(
    ("rights", "limits", "documents"),
    [
        ({"metadata": {"level": 1}}, {"metadata": {"level": True}}, []),
        ({"metadata": {"level": True}}, {"metadata": {"level": 1}}, []),
        ({"metadata": {"level": [1, "1st"]}}, {"metadata": {"level": [True, "1st"]}}, ["Salary list"]),
        ({"metadata": {"level": 1}}, {"metadata": {"team": "ops"}}, ["Gauge notes"]),
        ({"batches": ["hr"]}, {"batches": ["public", "hr"]}, ["Salary list", "Zebulon memorandum"]),
        ({"as_of": "1901-05"}, {"since": "1901-06"}, []),
        ({"as_of": "1901-05"}, {"as_of": "1999"}, ["Pump notes"]),
    ],
    ids=repr,
)
def test_a_filter_narrows_rights(rag: GraphRAG, rights: Any, limits: Any, documents: list[str]) -> None:
    for filters in ({"filter": Filter(**limits)}, limits):
        found = rag.retrieve(QUESTION, rights=Filter(**rights), **filters)
        assert sorted(found["document"]) == documents


EVERYTHING = [
    Filter(batches=["public", "hr"]),
    Filter(batches=["public", "hr", "gone"]),
    Filter(documents=["Gauge notes", "Tide notes", "Pump notes", "Zebulon memorandum", "hr/five.json"]),
    Filter(metadata={"level": [1, 1.5, True, "1st"]}),
]


@pytest.mark.parametrize("everything", EVERYTHING, ids=repr)
def test_a_filter_that_allows_everything_changes_nothing(rag: GraphRAG, everything: Filter) -> None:
    plain = rag.context("local", QUESTION)
    assert plain.frames["relationships"].height > 2
    for given in ({"filter": everything}, {"rights": everything}):
        found = rag.context("local", QUESTION, **given)
        assert found.text == plain.text
        assert {name: frame.to_dicts() for name, frame in found.frames.items()} == {
            name: frame.to_dicts() for name, frame in plain.frames.items()
        }


def test_options_of_a_method_are_no_filter_though_they_inherit_one(rag: GraphRAG) -> None:
    hidden = DriftOptions(filter=Filter(batches=["public"]))
    for name in ("rights", "filter"):
        with pytest.raises(InvalidOption, match=r"must be a Filter, such as Filter\("):
            rag.basic(QUESTION, **{name: hidden})
        with pytest.raises(InvalidOption, match=f"The option {name} is .*must be a Filter"):
            rag.basic(QUESTION, **{name: {"batches": ["public"]}})
    with pytest.raises(InvalidOption, match="did you mean history"):
        rag.basic(QUESTION, turns=[])  # type: ignore[call-arg]


def test_a_filter_whose_conditions_no_document_meets_says_so_whatever_the_rights_hide(rag: GraphRAG) -> None:
    limits: list[dict[str, Any]] = [{"documents": "Tide notes", "since": "1857"}, {"since": "1999"}]
    for rights in (None, *RIGHTS[:2]):
        for given in limits:
            errors = answered(rag, "basic", rights or Filter(), **given)[2]
            assert errors == ["No document meets all conditions of the filter."]
    assert answered(rag, "basic", Filter(batches=[]))[2] == []
    assert len(answered(rag, "basic", RIGHTS[0], batches=["gone", "gone"], entity_types=["GONE", "GONE"])[2]) == 2
