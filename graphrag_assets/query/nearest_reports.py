"""Community reports by their similarity to a question."""

from graphrag_assets.query.filters import EVERYTHING, Scope
from graphrag_assets.query.retrieval import Question, search_texts
from graphrag_assets.store.publication_reader import Reader


def nearest_reports(
    reader: Reader,
    question: Question,
    limit: int,
    scope: Scope = EVERYTHING,
    level: int | None = None,
    min_entities: int = 1,
) -> list[int]:
    """The reports that match the question best by words and vectors, best first.

    Args:
        level: the deepest level of their communities; None: all.
        min_entities: minimum number of entities of their communities.
    """
    candidates = limit
    while True:
        nearest = search_texts(reader, "community_report", question.for_reports, candidates, scope)
        allowed = set(
            reader.numbers(
                """
                SELECT r.human_readable_id FROM community_reports r JOIN communities c USING (community)
                WHERE r.human_readable_id IN (SELECT unnest($nearest::INT[]))
                  AND r.level <= coalesce($level, r.level) AND c.size >= $least
                """,
                {"nearest": nearest, "level": level, "least": min_entities},
            )
        )
        found = [number for number in nearest if number in allowed][:limit]
        if len(found) == limit or len(nearest) < candidates:
            return found
        candidates *= 4
