-- After publish.sql, and with its temporary tables: the mentions, and the history of communities.

DELETE FROM entity_mentions WHERE id IN (FROM touched_entity_mentions);
INSERT INTO entity_mentions BY NAME
SELECT m.*, e.number AS entity_number, u.number AS text_unit_number
FROM working.entity_mentions m
LEFT JOIN entity_of_name e ON e.document_id = m.document_id AND e.key = m.title_key
LEFT JOIN unit_numbers u ON u.id = m.text_unit_id
WHERE m.rowid IN (SELECT rowid FROM working.entity_mentions WHERE id IN (FROM touched_entity_mentions))
ORDER BY entity_number, text_unit_number, m.id;

DELETE FROM relationship_mentions WHERE id IN (FROM touched_relationship_mentions);
INSERT INTO relationship_mentions BY NAME
SELECT m.*, r.human_readable_id AS relationship_number, s.number AS source_number, t.number AS target_number,
       u.number AS text_unit_number
FROM working.relationship_mentions m
LEFT JOIN entity_of_name s ON s.document_id = m.document_id AND s.key = m.source_key
LEFT JOIN entity_of_name t ON t.document_id = m.document_id AND t.key = m.target_key
LEFT JOIN relationships r
       ON least(r.source_number, r.target_number) = least(s.number, t.number)
      AND greatest(r.source_number, r.target_number) = greatest(s.number, t.number)
LEFT JOIN unit_numbers u ON u.id = m.text_unit_id
WHERE m.rowid IN (SELECT rowid FROM working.relationship_mentions WHERE id IN (FROM touched_relationship_mentions))
ORDER BY relationship_number, text_unit_number, m.id;

DELETE FROM community_history WHERE revision NOT IN (SELECT revision FROM working.community_history);
-- An event is of the first publication with its revision: that of the newest revisions is this one.
INSERT INTO community_history BY NAME
WITH made AS (
    SELECT number, published_at, community_revision FROM working.publications
    UNION SELECT number, published_at, community_revision FROM publication
), spans AS (
    SELECT number, published_at, lag(community_revision, 1, 0) OVER (ORDER BY number) AS before, community_revision AS last
    FROM made
)
SELECT h.*, s.number AS publication, s.published_at
FROM working.community_history h LEFT JOIN spans s ON h.revision > s.before AND h.revision <= s.last
WHERE h.revision NOT IN (SELECT revision FROM community_history) ORDER BY ALL;
