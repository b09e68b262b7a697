"""Sentences of community reports: whether they cite, and whether their community has the names that they say.

A name counts as supported if it stands in the text units, titles or descriptions of the community's members.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphrag_assets.extras.evaluation.evaluators.facts import facts_in, words_of
from graphrag_assets.extras.evaluation.questions import Placed
from graphrag_assets.query.support import cited_statements
from graphrag_assets.store.publication_reader import Reader

_MAX_UNITS = 200  # of a community: larger ones have nearly all names


class ReportSentences(NamedTuple):
    """Of the sentences of a report: all, those with a citation, those with all names supported."""

    sentences: int
    cited: int
    supported: int


_MAIN = """
WITH deepest AS (
    SELECT t.text_unit, c.community FROM search.entity_text_units t JOIN search.entity_communities c USING (entity)
    JOIN community_reports r ON r.community = c.community AND r.level = c.level
    WHERE t.text_unit IN (SELECT unnest($units::INT[]))
    QUALIFY c.level = max(c.level) OVER (PARTITION BY t.text_unit, t.entity)
)
SELECT text_unit, community FROM deepest GROUP BY text_unit, community
QUALIFY row_number() OVER (PARTITION BY text_unit ORDER BY count(*) DESC, community) = 1
"""
"""Of each text unit, the community of most of its entities, at the deepest level that has a report."""
_TEXTS = """
WITH members AS (
    SELECT DISTINCT community, entity FROM search.entity_communities
    WHERE community IN (SELECT unnest($communities::INT[]))
)
SELECT community, concat_ws(' ', title, description) AS text FROM members
JOIN entities ON human_readable_id = entity
UNION ALL
SELECT community, concat_ws(' ', context, text) FROM (
    SELECT DISTINCT community, text_unit FROM members JOIN search.entity_text_units USING (entity)
    QUALIFY row_number() OVER (PARTITION BY community ORDER BY text_unit) <= $most
) JOIN text_units ON human_readable_id = text_unit
"""
_REPORTS = """
SELECT community, full_content FROM community_reports
WHERE community IN (SELECT unnest($communities::INT[])) ORDER BY community
"""


def report_sentences(reader: Reader, communities: Iterable[int]) -> dict[int, ReportSentences]:
    """The sentences of the reports of communities."""
    wanted = {"communities": sorted(set(communities))}
    texts: dict[int, list[str]] = {}
    for community, text in reader.frame(_TEXTS, {**wanted, "most": _MAX_UNITS}).iter_rows():
        texts.setdefault(community, []).append(text)
    reports = reader.frame(_REPORTS, wanted).iter_rows()
    return {community: judged(content or "", texts.get(community, ())) for community, content in reports}


def judged(report: str, texts: Iterable[str]) -> ReportSentences:
    """The sentences of a report, judged by the texts of its community. Headings do not count."""
    known = words_of(texts)
    statements = [(said, rows) for said, rows in cited_statements(report) if not said.startswith("#")]
    names = [facts_in(said)["names"] for said, _ in statements]
    supported = sum(all(word in known or set(word.split("-")) <= known for word in found) for found in names)
    return ReportSentences(len(statements), sum(bool(rows) for _, rows in statements), supported)


def report_support(reader: Reader, placed: Sequence[Placed]) -> dict[str, float]:
    """For each question the share of supported sentences in the reports of what its gold passages name."""
    units = sorted(frozenset().union(*(each.all_units for each in placed)))
    of_unit: dict[int, set[int]] = {}
    for unit, community in reader.frame(_MAIN, {"units": units}).iter_rows():
        of_unit.setdefault(unit, set()).add(community)
    judged_reports = report_sentences(reader, {community for found in of_unit.values() for community in found})
    shares = {}
    for each in placed:
        communities = {community for unit in each.all_units for community in of_unit.get(unit, ())}
        found = [judged_reports[community] for community in sorted(communities) if community in judged_reports]
        if total := sum(one.sentences for one in found):
            shares[each.question.id] = sum(one.supported for one in found) / total
    return shares
