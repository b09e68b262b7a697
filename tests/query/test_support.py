"""How many sentences of an answer have their names, numbers and dates in what they cite."""

import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.extras.planned.search import NO_PLANNER
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.support import Supported, cited_statements, supported_sentences

HUDSON = "Captain William Hudson commanded the Niagara on 5 August 1858."


def passage(number: int, text: str) -> Citation:
    row = CitedRow("Sources", number, f"t{number}", "d")
    return Citation((row,), f"t{number}", "d", "d", "d.txt", 0, len(text), text)


@pytest.mark.parametrize(
    ("said", "supported"),
    [
        ("The Niagara was under William Hudson in 1858. [Data: Sources (0)]", (1, 1)),
        ("The Niagara was under William Hudson in 1857. [Data: Sources (0)]", (0, 1)),  # another year
        ("The Agamemnon was under William Hudson. [Data: Sources (0)]", (0, 1)),  # another name
        ("It cost $1,500.50 that day. [Data: Sources (1)]", (1, 1)),
        ("It cost $1,500 that day. [Data: Sources (1)]", (0, 1)),
        ("The Niagara, at $1,500.50, was under Hudson. [Data: Sources (0, 1)]", (1, 1)),  # in two passages
        ("The Niagara was under William Hudson.", (0, 1)),  # cites nothing
        ("The Niagara was under William Hudson. [Data: Sources (7)]", (0, 1)),  # cites no passage
        ("She broke it twice. [Data: Sources (0)]", (0, 0)),  # nothing to look for
        ("# The Niagara\n\n- The captain was Hudson. [Data: Sources (0)]\n- He died in London.", (1, 2)),
        (f"{NO_ANSWER}\n\nStep 1 (Which ship was Hudson's?) found nothing.", (0, 0)),
        (f"{CLOSEST}\n- {HUDSON} [Data: Sources (0)]", (1, 1)),
    ],
)
def test_a_sentence_is_supported_if_its_names_and_numbers_are_in_what_it_cites(said, supported):
    cited = [passage(0, HUDSON), passage(1, "The voyage cost $1,500.50.")]
    assert supported_sentences(said, cited) == supported


def test_statements_have_the_rows_cited_at_their_end():
    answer = "# Title\n- One. [Data: Sources (1)] [Data: Reports (2)]\n- Two.\n- Three [Data: Sources (3)]. Rest."
    assert [(said, rows) for said, rows in cited_statements(answer) if rows] == [
        ("- One.", (("Sources", 1), ("Reports", 2))),
        ("- Three", (("Sources", 3),)),
    ]


@pytest.mark.parametrize("method", ["local", "global", "drift", "basic", "lazy", "planned", "ask"])
def test_every_method_counts_supported_sentences_and_streaming_too(rag: GraphRAG, method: str):
    answer = rag.search(method, "Who commanded the Niagara?")
    assert answer.supported == Supported(1, 1)  # a note of planned search is no sentence of the answer
    assert (NO_PLANNER in answer.answer) == (method == "planned")
    list(stream := rag.stream(method, "Who commanded the Niagara?"))
    assert stream.result.supported == answer.supported
    assert answer.to_dict()["supported"] == (1, 1)
    shown = "Supported: 1 of 1 sentences have their names and numbers in what they cite"
    assert shown in answer._repr_markdown_()
    assert shown in str(answer)
