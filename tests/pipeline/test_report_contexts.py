"""Contexts on a graph small enough to work out by hand.

Entities A to E; relationships A-B, A-C, C-D, D-E. Community 1 = {A, B, C, D, E}; its sub-communities are
2 = {A, B, C} and 3 = {D, E}.
"""

from datetime import date

import polars as pl
import pytest

from graphrag_assets.pipeline.report_contexts import (
    Contexts,
    evidence,
    fitted_contexts,
    local_rows,
    source_lines,
    source_rows,
)
from graphrag_assets.text.words import count_tokens

LONG = "word " * 60


ENTITIES = pl.DataFrame(
    {
        "id": list("abcde"),
        "human_readable_id": [0, 1, 2, 3, 4],
        "title": ["A", "B", "C", "D", "E, the last"],
        "type": ["X"] * 5,
        "description": ["is a", "is b", "is c", "is d", 'said "e"'],
        "degree": [2, 1, 2, 2, 1],
        "text_unit_ids": [["u2"], ["u1"], ["u2"], ["u2", "u3"], ["u3"]],
    }
)


def relationships(description: str = "meets") -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": ["ab", "ac", "cd", "de"],
            "human_readable_id": [10, 11, 12, 13],
            "source": ["A", "A", "C", "D"],
            "target": ["B", "C", "D", "E, the last"],
            "type": ["FRIEND", "", None, "FRIEND"],
            "relations": ["", "", None, "FRIEND; ← OWED (1866-07-27)"],
            "description": [description] * 4,
            "combined_degree": [3, 4, 4, 3],
            "source_id": ["a", "a", "c", "d"],
            "target_id": ["b", "c", "d", "e"],
        }
    )


CLAIMS = pl.DataFrame(
    {
        "human_readable_id": [20],
        "subject_entity_id": ["d"],
        "subject_id": ["D"],
        "type": ["AMOUNT"],
        "status": ["TRUE"],
        "start_date": ["1866"],
        "end_date": [None],
        "description": ["D cost 5"],
    },
    schema_overrides={"end_date": pl.String},
)
WHOLE = pl.DataFrame({"community": [1] * 5, "entity_id": list("abcde")})
PARTS = pl.DataFrame({"child": [2, 2, 2, 3, 3], "entity_id": list("abcde")})
NO_REPORTS = pl.DataFrame(
    schema={"community": pl.Int64, "title": pl.String, "summary": pl.String, "full_content": pl.String}
)


def level_contexts(
    lines: pl.DataFrame,
    limit: int,
    reports: pl.DataFrame = NO_REPORTS,
    members: pl.DataFrame = WHOLE,
) -> Contexts:
    return fitted_contexts(local_rows(members, PARTS, lines), reports, limit)


def test_a_context_holds_every_internal_relationship_by_combined_degree_then_number():
    contexts = level_contexts(evidence(ENTITIES, relationships(), CLAIMS), 8000)
    related = contexts.rows.filter(pl.col("section") == "Relationships")["number"].to_list()
    assert related == [11, 12, 10, 13]
    assert contexts.contexts["context"].item() == (
        "-----Entities-----\n"
        "id,entity,type,description,degree\n"
        "0,A,X,is a,2\n"
        "2,C,X,is c,2\n"
        "3,D,X,is d,2\n"
        "1,B,X,is b,1\n"
        '4,"E, the last",X,"said ""e""",1\n'
        "\n"
        "-----Claims-----\n"
        "id,subject,type,status,start_date,end_date,description\n"
        "20,D,AMOUNT,TRUE,1866,,D cost 5\n"
        "\n"
        "-----Relationships-----\n"
        "id,source,target,type,description,combined_degree\n"
        "11,A,C,,meets,4\n"
        "12,C,D,,meets,4\n"
        "10,A,B,FRIEND,meets,3\n"
        '13,D,"E, the last",FRIEND; ← OWED (1866-07-27),meets,3'
    )


def test_the_largest_sub_community_is_replaced_by_its_report_when_the_context_is_too_long():
    reports = pl.DataFrame(
        {
            "community": [2, 3],
            "title": ["About A", "About D"],
            "summary": ["", ""],
            "full_content": ["short two", "short three"],
        }
    )
    lines = evidence(ENTITIES, relationships(LONG), CLAIMS)
    contexts = level_contexts(lines, 360, reports)
    rows = contexts.rows.select("section", "number").rows()
    # 2 holds the relationships A-B and A-C; C-D crosses and stays, and so does all of 3.
    assert rows == [
        ("Reports", 2),
        ("Entities", 3),
        ("Claims", 20),
        ("Relationships", 12),
        ("Entities", 4),
        ("Relationships", 13),
    ]
    assert "2,About A,short two" in contexts.contexts["context"].item()


def test_a_report_longer_than_the_rows_of_its_community_does_not_replace_them():
    reports = pl.DataFrame({"community": [3], "title": ["D"], "summary": [""], "full_content": [LONG * 9]})
    contexts = level_contexts(evidence(ENTITIES, relationships(LONG), CLAIMS), 360, reports)
    assert "Reports" not in contexts.rows["section"]


def test_context_over_the_limit_has_rows_of_every_kind():
    lines = evidence(ENTITIES, relationships(LONG), CLAIMS)
    contexts = level_contexts(lines, 260)
    # A relationship takes 71 tokens of the 164 for rows; the rest goes to the short rows that follow.
    rows = contexts.rows.select("section", "number").rows()
    assert [number for section, number in rows if section == "Relationships"] == [11]
    assert [number for section, number in rows if section == "Entities"] == [0, 2, 3, 1, 4]
    assert ("Claims", 20) in rows


def test_community_of_one_long_entity_has_its_description_cut_at_a_sentence():
    sentence = 'The lamp, called "the eye", stood on the rock. '
    alone = ENTITIES.filter(pl.col("id") == "a").with_columns(description=pl.lit(sentence * 100))
    lines = evidence(alone, relationships().clear(), CLAIMS.clear())
    contexts = level_contexts(lines, 300, members=WHOLE.filter(pl.col("entity_id") == "a"))
    context = contexts.contexts["context"].item()
    assert contexts.rows.select("section", "number").rows() == [("Entities", 0)]
    assert context.endswith('stood on the rock."')
    assert 200 < count_tokens([context])[0] <= 300


@pytest.mark.parametrize(("n_words", "is_whole"), [(660, True), (840, False)])
def test_a_row_longer_than_its_share_is_whole_where_the_rows_of_other_kinds_leave_room(n_words, is_whole):
    alone = ENTITIES.filter(pl.col("id") == "d").with_columns(description=pl.lit("word " * n_words))
    claims = pl.concat([CLAIMS, CLAIMS]).with_columns(description=pl.lit(LONG * 4))
    lines = evidence(alone, relationships().clear(), claims)
    rows = level_contexts(lines, 1096, members=WHOLE.filter(pl.col("entity_id") == "d")).rows
    assert rows["section"].to_list() == ["Entities", "Claims"]
    assert (rows["line"][0].count("word") == n_words) is is_whole
    assert rows["tokens"].to_list() == [n + 1 for n in count_tokens(rows["line"])]


@pytest.mark.parametrize("limit", [200, 300, 400, 600, 1000])
def test_no_context_is_longer_than_the_limit(limit):
    reports = pl.DataFrame(
        {"community": [2, 3], "title": ["x", "y"], "summary": ["", ""], "full_content": ["one " * 50, "two " * 50]}
    )
    contexts = level_contexts(evidence(ENTITIES, relationships(LONG), CLAIMS), limit, reports)
    context = contexts.contexts["context"].item()
    assert 0 < count_tokens([context])[0] <= limit


def sources(reports: pl.DataFrame = NO_REPORTS, repeat: int = 1, limit: int = 8000, dates: object = None) -> str:
    texts = [f"{text} " * repeat for text in ("B slept.", "A met\nC and D.", "D met E.")]
    units = pl.DataFrame({"id": ["u1", "u2", "u3"], "human_readable_id": [1, 2, 3], "text": texts})
    lines = source_lines(units.with_columns(document_date=pl.Series(dates)) if dates else units)
    return fitted_contexts(source_rows(WHOLE, PARTS, ENTITIES, lines), reports, limit).contexts["context"].item()


def test_text_units_come_by_the_degrees_of_the_entities_that_they_name_with_the_dates_of_their_documents():
    assert sources() == "-----Sources-----\nid,text\n2,A met C and D. \n3,D met E. \n1,B slept. "
    dated = sources(dates=[None, None, date(1866, 7, 27)])
    assert "-----Sources-----\nid,text,document_date\n2,A met C and D. \n3,D met E. ,1866-07-27\n1," in dated


def test_over_the_limit_a_report_replaces_the_text_units_of_its_community_alone():
    reports = pl.DataFrame({"community": [3], "title": ["D and E"], "summary": [""], "full_content": ["They met."]})
    shown = sources(reports, repeat=40, limit=500)
    assert shown.startswith("-----Reports-----\nid,title,content\n3,D and E,They met.")
    assert "2,A met C and D." in shown  # names entities of both sub-communities
    assert "D met E." not in shown
