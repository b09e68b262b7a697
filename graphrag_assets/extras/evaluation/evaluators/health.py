"""The health of an index: numbers that need no question."""

import igraph

from graphrag_assets.extras.evaluation.evaluators.reports import report_sentences
from graphrag_assets.store.publication_reader import Reader

_COUNTS = """
SELECT
    (SELECT avg(contains(lower(concat_ws(' ', u.context, u.text)), lower(m.title))::INT)
     FROM entity_mentions m JOIN text_units u ON u.id = m.text_unit_id) AS "names in text",
    (SELECT count(*) / greatest(count(DISTINCT text_unit), 1) FROM search.entity_text_units) AS "entities per unit",
    (SELECT avg((degree = 0)::INT) FROM entities) AS "singletons"
"""


def health(reader: Reader) -> dict[str, float]:
    """Numbers of a publication; all but `entities per unit` are shares.

    Returns:
        names in text: extracted names that stand literally in their text unit or its headings.
        entities per unit: the mean over text units that name any.
        singletons: entities without a relationship.
        largest component: entities in the largest connected part of the graph.
        uncited report sentences: without a citation.
        unsupported report sentences: with a name that their community does not have.
    """
    found = {name: float(value or 0) for name, value in reader.frame(_COUNTS).row(0, named=True).items()}
    entities = reader.frame("SELECT human_readable_id FROM entities ORDER BY ALL")["human_readable_id"].to_list()
    places = {number: place for place, number in enumerate(entities)}
    edges = reader.frame("SELECT source_number, target_number FROM relationships").iter_rows()
    graph = igraph.Graph(len(entities), [(places[one], places[other]) for one, other in edges])
    found["largest component"] = max(graph.connected_components().sizes(), default=0) / max(len(entities), 1)
    communities = reader.frame("SELECT community FROM community_reports")["community"].to_list()
    reports = report_sentences(reader, communities).values()
    total = sum(one.sentences for one in reports) or 1
    found["uncited report sentences"] = sum(one.sentences - one.cited for one in reports) / total
    found["unsupported report sentences"] = sum(one.sentences - one.supported for one in reports) / total
    return found
