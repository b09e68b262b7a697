import polars as pl

from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.embedding_texts import embedding_texts
from graphrag_assets.pipeline.report_citations import report_citations

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
    assert report_citations(reports, numbers).rows() == [
        ("r", "community_reports", 1, "one"),
        ("r", "covariates", 2, "two"),
        ("r", "entities", 5, "five"),
        ("r", "entities", 7, None),
    ]


def test_an_embedding_has_a_fingerprint_of_texts_and_model_and_entities_alone_have_none():
    def prints(model: str, text: str, context: str | None = "") -> dict[str, str]:
        frame = embedding_texts(
            pl.DataFrame({"id": ["u"], "context": [context], "text": [text]}, schema_overrides={"context": pl.String}),
            pl.DataFrame(
                {"id": ["e", "l"], "title": ["Ada", "Lone"], "description": ["A person.", "Alone."], "degree": [1, 0]}
            ).with_columns(frequency=1),
            pl.DataFrame({"id": ["c"], "title": ["Report"], "summary": ["In short."], "pair": [None]}),
            model,
        )
        assert frame.select("kind", "texts").rows() == [
            ("community_report", ["Report\n\nIn short."]),
            ("entity", ["Ada:A person."]),
            ("text_unit", [f"{context}\n{text}" if context else text]),
        ]
        return dict(frame.select("kind", "fingerprint").iter_rows())

    first, again, edited, other = prints("m", "x"), prints("m", "x"), prints("m", "y"), prints("n", "x")
    assert first == again == prints("m", "x", None)
    assert {kind for kind in first if first[kind] != prints("m", "x", "Title")[kind]} == {"text_unit"}
    assert {kind for kind in first if first[kind] != edited[kind]} == {"text_unit"}
    assert {kind for kind in first if first[kind] != other[kind]} == {"text_unit", "entity", "community_report"}


def test_entities_are_embedded_by_their_first_sentences_and_reports_on_pairs_by_their_members():
    long = "Ada is a mathematician. She wrote notes on an engine. " + "It was never built in her time. " * 9
    pair = [{"title": "Ada", "description": long}, {"title": "Engine", "description": "A machine."}]
    frame = embedding_texts(
        pl.DataFrame({"id": ["u"], "context": [""], "text": ["x"]}),
        pl.DataFrame({"id": ["a"], "title": ["Ada"], "description": [long], "frequency": [2], "degree": [1]}),
        pl.DataFrame({"id": ["c"], "title": ["Ada and Engine"], "summary": ["Both."], "pair": [pair]}),
        "m",
    )
    of_ada = [
        "Ada",
        "Ada:Ada is a mathematician. She wrote notes on an engine." + " It was never built in her time." * 2,
    ]
    assert frame["texts"].to_list() == [[of_ada[1], "Engine:A machine."], of_ada, ["x"]]
