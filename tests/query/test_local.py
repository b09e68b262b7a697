"""Local contexts: selection, order and budget."""

from dataclasses import replace

import polars as pl
import pytest

from graphrag_assets.query import METHODS, GraphRAG
from graphrag_assets.query.fetch import (
    relationships_around,
    report_rows,
    reports_about,
    without_relatives,
)
from graphrag_assets.query.local import LocalOptions, local_context
from graphrag_assets.query.question import Question
from graphrag_assets.store.publication_reader import Reader

from .conftest import AGAMEMNON, GREAT_EASTERN, HUDSON, NIAGARA, PENGUIN, TEXT_UNITS

QUESTION = Question("Who commanded the Niagara?")


def numbers(frame: pl.DataFrame) -> list[int]:
    return frame["human_readable_id"].to_list()


def test_reports_come_last_and_headings_are_those_of_graphrag(reader: Reader) -> None:
    context = local_context(reader, QUESTION)
    assert [section.name for section in context.sections] == [
        "Entities",
        "Relationships",
        "Claims",
        "Sources",
        "Reports",
    ]
    assert "-----Entities-----\nid|entity|type|description|number of relationships\n1|Niagara|" in context.text
    assert "-----Sources-----\nid|context|text\n0|Document 0|The Agamemnon and the Niagara met" in context.text


def test_relationships_inside_the_selection_come_first_then_by_links_then_by_weight(reader: Reader) -> None:
    # Selected: Agamemnon, Great Eastern, Hudson. No relationship joins two of them. Valentia is linked with two of
    # them, Niagara too; Gooch with one. By links, then weight: Great Eastern-Valentia 4, Agamemnon-Niagara 3,
    # Niagara-Hudson 2, Agamemnon-Valentia 1; then Great Eastern-Gooch.
    outside = relationships_around(reader, [AGAMEMNON, GREAT_EASTERN, HUDSON], 10)
    assert numbers(outside) == [4, 0, 1, 2, 3]
    assert outside["links"].to_list() == [2, 2, 2, 2, 1]
    # With Niagara selected, its two relationships to selected entities are inside and go first.
    inside = relationships_around(reader, [AGAMEMNON, NIAGARA, HUDSON], 10)
    assert numbers(inside) == [0, 1, 2]
    assert inside["in_network"].to_list() == [True, True, False]


def test_reports_are_of_all_levels_and_come_by_matched_entities_then_rank(reader: Reader) -> None:
    # Agamemnon and Niagara: both in community 0 (rank 5) and in 3 (rank 2); Penguin: in 2 (rank 3) on both levels.
    assert numbers(reports_about(reader, [AGAMEMNON, NIAGARA, PENGUIN])) == [0, 3, 2]
    assert reports_about(reader, [AGAMEMNON, NIAGARA, PENGUIN])["matches"].to_list() == [2, 2, 1]


def test_reports_by_similarity_are_ranked_beside_those_of_the_entities(reader: Reader) -> None:
    # Without entities, only similarity counts: the reports on communities 4 and 0 have the buyers, the shorter first,
    # and 4 is below 0.
    none = LocalOptions(top_k_entities=0)
    asked = Question("Who headed the buyers?")
    assert numbers(local_context(reader, asked, none).frames["reports"])[:2] == [4]
    assert numbers(local_context(reader, asked, replace(none, community_level=0)).frames["reports"]) == [0]
    # A community of one entity is no candidate by similarity.
    assert 2 not in numbers(
        local_context(reader, Question("Which penguins were near the ice?"), none).frames["reports"]
    )
    # By membership 0, 3, 2; by similarity 4, 0. Report 0 is in both rankings: 1/61 + 1/62; then 4 (1/61), 3, 2.
    found = reports_about(reader, [AGAMEMNON, NIAGARA, PENGUIN], similar=[2, 4, 0, 3], n_similar=2)
    assert numbers(found) == [0, 4, 3, 2]
    assert found["matches"].to_list() == [2, 0, 2, 1]


def test_a_claim_that_a_text_unit_of_the_context_states_is_not_repeated(reader: Reader) -> None:
    asked = Question("What did the oil of the lamps cost?")
    whole = local_context(reader, asked).frames
    assert whole["sources"].filter("in_context").height == len(TEXT_UNITS)
    assert whole["claims"].is_empty()
    few = local_context(reader, asked, LocalOptions(max_context_tokens=150)).frames
    best = numbers(few["sources"])[0]
    assert few["sources"]["in_context"].to_list()[0]
    assert few["claims"].height > 0
    assert best not in few["claims"]["text_unit_number"]


def test_several_hops_reach_beyond_the_neighbors(reader: Reader) -> None:
    # Hudson – Niagara – Agamemnon – Valentia – Great Eastern
    def reached(hops: int) -> set[str]:
        options = LocalOptions(top_k_entities=1, top_k_relationships=10, hops=hops)
        frame = local_context(reader, Question("Whom did William Hudson meet?"), options).frames["relationships"]
        return {end for pair in frame.select("source", "target").rows() for end in pair}

    assert reached(1) == {"William Hudson", "Niagara"}
    assert reached(2) == {"William Hudson", "Niagara", "Agamemnon"}
    assert reached(4) >= {"Valentia", "Great Eastern"}
    far = local_context(reader, Question("Whom did William Hudson meet?"), LocalOptions(top_k_entities=1, hops=3))
    assert "id|source|target|type|description|weight|hop\n" in far.text
    assert far.frames["relationships"]["hop"].to_list() == sorted(far.frames["relationships"]["hop"])
    assert numbers(far.frames["entities"])[0] == HUDSON
    assert numbers(far.frames["entities"]) == [HUDSON, NIAGARA]


HOSTILE = [
    "'; DROP TABLE entities; --",
    'Who is "Robert\'); DELETE FROM documents; --"?',
    "$question $1 ? :name %s {0} {{ x }} \\",
    "SELECT * FROM entities WHERE title = 'Niagara' OR 1 = 1 /*",
    "Niagara\x00’s “crew”; ATTACH '/etc/passwd' AS x; COPY entities TO '/tmp/out'",
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", HOSTILE)
def test_sql_in_questions_names_and_filters_stays_text(rag: GraphRAG, method: str, text: str) -> None:
    tables = ("entities", "documents", "text_units", "community_reports")
    before = {table: rag.sql(f"SELECT * FROM {table}") for table in tables}
    answer = rag.search(method, text, history=[("user", text)], response_type=text, language=text)
    assert answer.question == text
    rag.search(method, "Who?", documents=[text], metadata={text: text})
    if method == "local":
        rag.ask(text)
        rag.questions([text])
        for name in ("batches", "entity_types"):
            rag.local("Who?", **{name: [text]})
    assert all(rag.sql(f"SELECT * FROM {table}").equals(before[table]) for table in tables)


@pytest.mark.parametrize(
    ("ranked", "kept"),
    [
        ([0, 1, 3, 4], [0, 1]),  # 3 and 4 are below 0
        ([3, 0, 2, 4], [3, 2, 4]),
        ([4, 3, 1], [4, 3, 1]),
    ],
)
def test_no_report_stands_beside_one_of_a_community_above_or_below(
    reader: Reader, ranked: list[int], kept: list[int]
) -> None:
    assert without_relatives(reader, report_rows(reader, ranked))["community"].to_list() == kept
