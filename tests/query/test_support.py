"""How many sentences of an answer are supported by what they cite."""

import re

import pytest

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER
from graphrag_assets.extras.planned.search import NO_PLANNER
from graphrag_assets.query import GraphRAG
from graphrag_assets.query.citations import Citation, CitedRow
from graphrag_assets.query.contradictions import ContradictingClaim, Contradiction
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
        ("She broke it. [Data: Sources (0)]", (0, 0)),  # nothing to look for
        ("The captain commanded there. [Data: Sources (0)]", (1, 1)),  # words alone
        ("The captain commanded there. [Data: Sources (1)]", (0, 1)),
        ("The Niagara was under Hudson on 1858-08-05. [Data: Sources (0)]", (1, 1)),  # one date, written otherwise
        ("The Niagara was under Hudson in August 1858. [Data: Sources (0)]", (1, 1)),
        ("The Niagara was under Hudson on August 6, 1858. [Data: Sources (0)]", (0, 1)),
        ("The documents do not mention what Hudson earned in 1858. [Data: Sources (0)]", (0, 0)),  # a gap
        ("There is no information on Hudson in the data.", (0, 0)),
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
    shown = "Supported: 1 of 1 sentences are supported by what they cite"
    assert shown in answer._repr_markdown_()
    assert shown in str(answer)


PASSAGES = [
    "Captain William Hudson commanded the frigate Niagara on 5 August 1858, with 391 sailors aboard.",
    "Cyrus Field bought the schooner Wanderer at Boston for $12,500 on 12 March 1861.",
    "Robert Halpin repaired the telegraph at Valentia in 37 hours, and Samuel Canning paid him £90.",
    "Emma Lindqvist founded the Harbour Company with seven merchants of Bergen in June 1872.",
]
PARAPHRASES = [
    "On August 5, 1858 the frigate Niagara was commanded by William Hudson, who had 391 sailors.",
    "The schooner Wanderer was bought by Field on 1861-03-12 for $12,500.",
    "Halpin needed 37 hours for the repair of the telegraph at Valentia.",
    "The Harbour Company was founded in June 1872 by Lindqvist, with merchants from Bergen.",
]
NAMES = [
    "Niagara",
    "Hudson",
    "Wanderer",
    "Field",
    "Halpin",
    "Valentia",
    "Harbour",
    "Lindqvist",
    "Bergen",
    "August",
    "June",
]
NUMBERS = ["391", "1858", "5", "12,500", "1861-03-12", "37", "1872"]


def answer_of(paraphrases: list[str], shift: dict[int, int] | None = None) -> str:
    cited = {number: (shift or {}).get(number, number) for number in range(len(paraphrases))}
    return " ".join(f"{text} [Data: Sources ({cited[number]})]" for number, text in enumerate(paraphrases))


def level(answer: str) -> Supported:
    cited = [passage(number, text) for number, text in enumerate(PASSAGES)]
    return supported_sentences(answer, cited, read=PASSAGES)


def test_an_answer_in_other_words_is_supported():
    assert level(answer_of(PARAPHRASES)) == (4, 4)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("other", range(1, 4))
def test_a_wrong_passage_lowers_the_level(place: int, other: int):
    assert level(answer_of(PARAPHRASES, {place: (place + other) % 4})) == (3, 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_name_lowers_the_level(name: str):
    wrong = {"August": "October", "June": "May"}.get(name, "Wilkinson")
    changed = [re.sub(rf"\b{name}\b", wrong, text) for text in PARAPHRASES]
    if name == "Halpin":  # at the beginning of a sentence a word is a name if a text has it so
        changed = [text.replace("Wilkinson", "Lindqvist") for text in changed]
    assert changed != PARAPHRASES
    assert level(answer_of(changed)) == (3, 4)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_wrong_number_lowers_the_level(number: str):
    wrong = {"1861-03-12": "1861-03-13"}.get(number, "14")
    changed = [re.sub(rf"\b{number}\b", wrong, text) for text in PARAPHRASES]
    assert changed != PARAPHRASES
    assert level(answer_of(changed)).sentences < 4


def test_words_that_the_index_does_not_have_do_not_count(rag: GraphRAG):
    reader = rag.index.reader()
    said = "Glorious nautical chieftain Hudson commanded bravely zealously. [Data: Sources (0)]"
    assert supported_sentences(said, [passage(0, HUDSON)], reader=reader) == (1, 1)
    assert supported_sentences(said, [passage(0, HUDSON)]) == (0, 1)


@pytest.mark.parametrize(("cites_the_other", "supported"), [(False, (0, 1)), (True, (1, 1))])
def test_a_claim_that_a_later_one_contradicts_lowers_the_level(cites_the_other: bool, supported: tuple[int, int]):
    def claim(number: int, price: str, later: bool, cited: bool) -> ContradictingClaim:
        said = f"The Wanderer was sold for {price}."
        return ContradictingClaim(number, said, "TRUE", "NONE", None, "d", "d", "d", 0, 9, None, later, cited)

    claims = claim(0, "£500", False, True), claim(1, "£700", True, cites_the_other)
    found = [Contradiction(0.9, "Wanderer", "AMOUNT", "number", claims)]
    said = "The Wanderer was sold for £500. [Data: Sources (0)]"
    assert supported_sentences(said, [passage(0, claims[0].description)], found) == supported
