import polars as pl

from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.embedding_texts import texts_of
from graphrag_assets.pipeline.report_citations import references_in, resolved

TABLE = pl.DataFrame(
    {
        "key": ["root", "left", "right"],
        "level": [0, 1, 1],
        "parent": [None, "root", "root"],
        "children": [["right", "left"], [], []],
        "entity_ids": [["a", "b"], ["a"], ["b"]],
        "relationship_ids": [["ab"], [], []],
        "text_unit_ids": [["u1", "u2"], ["u1"], ["u2"]],
        "size": [2, 1, 1],
    }
)
IDS = pl.DataFrame({"key": ["root", "left", "right"], "id": ["R", "kept", "S"]})
NUMBERS = pl.DataFrame({"id": ["R", "kept", "S"], "human_readable_id": [4, 9, 7]})


def test_communities_name_parents_and_children_by_number():
    dated = pl.DataFrame({"id": ["u1", "u2"], "creation_date": ["1866-07-27T10:00:00", "1858-08-05T10:00:00"]})
    finished = finish_communities(TABLE, IDS, NUMBERS, periods(dated, TABLE))
    shown = finished.select("id", "community", "human_readable_id", "parent", "children", "title", "period").rows()
    assert shown == [
        ("R", 4, 4, -1, [7, 9], "Community 4", "1866-07-27"),
        ("S", 7, 7, 4, [], "Community 7", "1858-08-05"),
        ("kept", 9, 9, 4, [], "Community 9", "1866-07-27"),
    ]


def test_members_carry_the_number_of_their_community():
    members = pl.DataFrame({"level": [0, 1], "cluster": ["root", "left"], "entity_id": ["a", "a"]})
    assert finish_members(members, IDS, NUMBERS).rows() == [(4, 0, "a"), (9, 1, "a")]


def test_references_are_counted_once_and_resolved():
    reports = pl.DataFrame(
        {
            "id": ["r"],
            "full_content": [
                "A. [Data: Entities (5, 7); Claims (2)] B. [Data: Entities (5, +more); Reports (1); Gossip (3)] [Data: ()]"
            ],
        }
    )
    numbers = pl.DataFrame(
        {
            "table_name": ["entities", "covariates", "community_reports"],
            "id": ["five", "two", "one"],
            "human_readable_id": [5, 2, 1],
        }
    )
    assert resolved(references_in(reports), numbers).rows() == [
        ("r", "()", None, None),
        ("r", "Gossip", 3, None),
        ("r", "community_reports", 1, "one"),
        ("r", "covariates", 2, "two"),
        ("r", "entities", 5, "five"),
        ("r", "entities", 7, None),
    ]


def test_entities_are_embedded_by_their_first_sentences_and_reports_by_their_entities_too():
    long = "Ada is a mathematician. She wrote notes on an engine. " + "It was never built in her time. " * 9
    beginning = "Ada:Ada is a mathematician. She wrote notes on an engine. It was never built in her time."
    assert list(texts_of("entity", "Ada", long, None)) == ["Ada", beginning]
    assert texts_of("text_unit", "", "x", None) == ["x"]
    assert texts_of("text_unit", "Title", "x", None) == ["Title\nx"]
    of_report = [texts_of("community_report", "Report", "In short.", ["a", "b", "c"][:n]) for n in range(4)]
    assert of_report == [["Report\n\nIn short."] * times for times in (1, 1, 0, 3)]
