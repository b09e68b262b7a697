import polars as pl

from graphrag_assets.pipeline.community_tables import finish_communities, finish_members, periods
from graphrag_assets.pipeline.embedding_texts import embedding_texts
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


def entities(**described: str) -> pl.DataFrame:
    """Entities by title, which is their id; "Lone" has no relationship."""
    rows = [(title, title, text, int(title != "Lone")) for title, text in described.items()]
    return pl.DataFrame(rows, ["id", "title", "description", "degree"], orient="row")


def reports(*members: list[str] | None) -> pl.DataFrame:
    """Reports about entities, of which "Else" is not read, but has a vector."""
    rows = [
        (
            f"c{n}",
            "Report",
            "In short.",
            of and [{"id": one, "fingerprint": "print of Else"[: 13 * (one == "Else")]} for one in of],
        )
        for n, of in enumerate(members)
    ]
    return pl.DataFrame(rows, ["id", "title", "summary", "members"], orient="row")


UNITS = pl.DataFrame({"id": ["u"], "context": [""], "text": ["x"]})


def test_an_embedding_has_a_fingerprint_of_texts_and_model_and_entities_alone_have_none():
    def prints(model: str, text: str, context: str | None = "") -> dict[str, str]:
        units = pl.DataFrame(
            {"id": ["u"], "context": [context], "text": [text]}, schema_overrides={"context": pl.String}
        )
        rows, texts = embedding_texts(units, entities(Ada="A person.", Lone="Alone."), reports(None), model)
        told = {kind: [texts[part] for part in parts] for kind, parts in rows.select("kind", "parts").iter_rows()}
        assert told == {
            "community_report": ["Report\n\nIn short."],
            "entity": ["Ada", "Ada:A person."],
            "text_unit": [f"{context}\n{text}" if context else text],
        }
        return dict(rows.select("kind", "fingerprint").iter_rows())

    first, again, edited, other = prints("m", "x"), prints("m", "x"), prints("m", "y"), prints("n", "x")
    assert first == again == prints("m", "x", None)
    assert {kind for kind in first if first[kind] != prints("m", "x", "Title")[kind]} == {"text_unit"}
    assert {kind for kind in first if first[kind] != edited[kind]} == {"text_unit"}
    assert {kind for kind in first if first[kind] != other[kind]} == {"text_unit", "entity", "community_report"}


def test_entities_are_embedded_by_their_first_sentences_and_reports_by_their_entities_too():
    long = "Ada is a mathematician. She wrote notes on an engine. " + "It was never built in her time. " * 9
    graph = entities(Ada=long, Engine="A machine.", Byron="A poet.", Lone="Alone.")
    rows, texts = embedding_texts(UNITS, graph, reports(["Ada", "Engine"], ["Ada", "Byron", "Else"], ["Lone"]), "m")
    parts = dict(rows.select("id", "parts").iter_rows())
    of = dict(rows.select("id", "fingerprint").iter_rows())
    beginning = "Ada:Ada is a mathematician. She wrote notes on an engine. It was never built in her time."
    assert [texts[part] for part in parts["Ada"]] == ["Ada", beginning]
    assert parts["c0"] == [of["Ada"], of["Engine"]]
    summary = of["c2"]
    assert texts[summary] == "Report\n\nIn short."
    assert parts["c1"] == [summary] * 3 + [of["Ada"], of["Byron"], "print of Else"]
