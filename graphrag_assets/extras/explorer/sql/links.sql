-- How strongly communities are related that the map shows side by side: the children of one with more entities than
-- the map's limit, or, when the whole graph exceeds it, those of level 0. All entities count.
WITH crowded AS (
    SELECT community AS parent FROM communities WHERE size > $nodes
    UNION ALL SELECT -1 WHERE (SELECT count(*) FROM entities) > $nodes
), kept AS (
    SELECT community, level, parent, size FROM communities ORDER BY size DESC, level, community LIMIT $communities
), side_by_side AS (
    SELECT community, level, parent FROM kept WHERE parent IN (SELECT parent FROM crowded)
), placed AS (
    SELECT m.entity, s.community, s.parent
    FROM search.entity_communities m JOIN side_by_side s ON s.community = m.community AND s.level = m.level
)
SELECT least(a.community, b.community) AS source, greatest(a.community, b.community) AS target,
       count(*) AS relationships, round(sum(r.weight), 3) AS weight
FROM relationships r
JOIN placed a ON a.entity = r.source_number
JOIN placed b ON b.entity = r.target_number AND b.parent = a.parent
WHERE a.community <> b.community
GROUP BY 1, 2
ORDER BY weight DESC, source, target
