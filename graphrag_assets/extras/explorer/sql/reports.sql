-- The reports of the communities of the page.
WITH kept AS (
    SELECT community FROM communities ORDER BY size DESC, level, community LIMIT $communities
)
SELECT human_readable_id AS number, community, title, summary, rank, rating_explanation, findings
FROM community_reports
WHERE community IN (FROM kept)
ORDER BY community
