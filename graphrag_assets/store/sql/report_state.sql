-- Of each community: the writer and the fingerprint that its report has; the fingerprint that it is to have, and that it
-- gets when it is written again. Input: `claims` about entities, $written_by, $reads_texts.
-- A sum of hashes of rows needs no order. Not concat_ws of columns, which leaves out nulls.
CREATE OR REPLACE TEMP MACRO hash_of(line) AS md5_number_lower(line::VARCHAR)::HUGEINT;

CREATE OR REPLACE TEMP TABLE report_state AS
WITH RECURSIVE lines AS (  -- what is said of each entity
    SELECT id, hash_of(row(human_readable_id, title, type, description, degree)) AS hash FROM entities
    UNION ALL
    SELECT subject_entity_id, hash_of(row(human_readable_id, subject_id, type, status, start_date, end_date, description, document_date))
    FROM claims
    UNION ALL
    SELECT e.id, hash_of(row(e.id, n.human_readable_id, t.id, d.document_date))
    FROM (SELECT id, unnest(text_unit_ids) AS text_unit_id FROM entities WHERE $reads_texts) e
    JOIN text_units t ON t.id = e.text_unit_id LEFT JOIN documents d ON d.id = t.document_id
    JOIN numbers n ON n.table_name = 'text_units' AND n.id = t.id
), said AS (
    SELECT id, sum(hash) AS hash FROM lines GROUP BY id
), related AS (
    SELECT r.source_id, r.target_id,
           hash_of(row(r.human_readable_id, r.source, r.target, r.type, r.relations, r.description, s.degree + t.degree)) AS hash
    FROM relationships r JOIN entities s ON s.id = r.source_id JOIN entities t ON t.id = r.target_id
), members AS MATERIALIZED (
    SELECT community, entity_id FROM community_members JOIN communities USING (community, level)
), inside AS (
    SELECT community, sum(hash) AS hash FROM (
        SELECT m.community, s.hash FROM members m JOIN said s ON s.id = m.entity_id
        UNION ALL
        SELECT a.community, r.hash FROM related r JOIN members a ON a.entity_id = r.source_id
        JOIN members b ON b.entity_id = r.target_id AND b.community = a.community
    ) GROUP BY community
), own AS (
    SELECT community, hash_of(row(community, size, len(text_unit_ids), children, hash)) AS hash
    FROM communities LEFT JOIN inside USING (community)
), above AS (  -- a report may be part of the context of those above
    SELECT community, community AS of FROM communities
    UNION ALL SELECT c.parent, a.of FROM above a JOIN communities c USING (community) WHERE c.parent >= 0
), inputs AS (
    SELECT a.community, sum(hash)::VARCHAR AS hash FROM above a JOIN own ON own.community = a.of GROUP BY a.community
)
SELECT c.community, c.level, c.parent, c.size, r.id AS report_id, r.model, r.fingerprint AS stored,
       md5(concat(CASE r.model WHEN 'imported' THEN r.model ELSE $written_by END, i.hash)) AS fingerprint,
       md5(concat($written_by, i.hash)) AS next_fingerprint
FROM communities c JOIN inputs i USING (community) LEFT JOIN community_reports r USING (community);
