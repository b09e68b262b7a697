-- The tables of the page. Every query begins with these three; $ are the limits of `content.Limits`.
WITH on_page AS (
    SELECT human_readable_id AS number, title, type, description, degree, frequency
    FROM entities ORDER BY coalesce(degree, 0) DESC, number LIMIT $entities
), communities_on_page AS (
    SELECT community AS number, level, parent, title, size
    FROM communities ORDER BY size DESC, level, number LIMIT $communities
), relationships_on_page AS (
    SELECT human_readable_id AS number, source_number AS source, target_number AS target, type, description,
           round(r.weight, 3) AS weight
    FROM relationships r
    WHERE source_number IN (SELECT number FROM on_page) AND target_number IN (SELECT number FROM on_page)
    ORDER BY r.weight DESC, number LIMIT $relationships
)

-- table: entities
-- Those with most neighbors.
FROM on_page

-- table: relationships
-- The heaviest among these entities.
FROM relationships_on_page

-- table: communities
-- The largest, so that a child never comes without its parent.
FROM communities_on_page

-- table: memberships
-- The community of each entity of the page, at each level.
SELECT entity, level, community
FROM search.entity_communities
WHERE entity IN (SELECT number FROM on_page) AND community IN (SELECT number FROM communities_on_page)
ORDER BY ALL

-- table: links
-- How strongly communities are related that the map shows side by side: the children of one with more entities than
-- the map's limit, or, when the whole graph exceeds it, those of level 0. All entities count.
, crowded AS (
    SELECT community AS parent FROM communities WHERE size > $nodes
    UNION ALL SELECT -1 WHERE (SELECT count(*) FROM entities) > $nodes
), placed AS (
    SELECT m.entity, m.community, s.parent
    FROM communities_on_page s SEMI JOIN crowded USING (parent)
    JOIN search.entity_communities m ON m.community = s.number AND m.level = s.level
)
SELECT least(a.community, b.community) AS source, greatest(a.community, b.community) AS target,
       count(*) AS relationships, round(sum(r.weight), 3) AS weight
FROM relationships r
JOIN placed a ON a.entity = r.source_number
JOIN placed b ON b.entity = r.target_number AND b.parent = a.parent
WHERE a.community <> b.community
GROUP BY 1, 2
ORDER BY weight DESC, source, target

-- table: reports
-- Those on the communities of the page.
SELECT human_readable_id AS number, community, title, summary, rank, rating_explanation, findings
FROM community_reports
WHERE community IN (SELECT number FROM communities_on_page)
ORDER BY community

-- table: claims
-- Those about the best connected entities first.
SELECT c.human_readable_id AS number, subject_number AS subject, subject_id AS subject_name, object_number AS object,
       object_id AS object_name, c.type, c.description, status, start_date, end_date, text_unit_number AS unit,
       source_text
FROM covariates c LEFT JOIN entities e ON e.human_readable_id = c.subject_number
ORDER BY coalesce(e.degree, -1) DESC, c.human_readable_id
LIMIT $claims

-- table: documents
SELECT human_readable_id AS number, title, source, batch FROM documents ORDER BY batch, source, row_number, number

-- table: text_units
-- All; their texts up to $characters: the best text unit of each entity first, then the second best, so that every
-- entity can be read about.
, places AS (
    SELECT text_unit, row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place
    FROM search.entity_text_units
), best AS (
    SELECT text_unit, min(place) AS place FROM places GROUP BY ALL
), summed AS (
    SELECT human_readable_id AS number,
           sum(length(text)) OVER (ORDER BY place NULLS LAST, human_readable_id ROWS UNBOUNDED PRECEDING) AS characters
    FROM text_units LEFT JOIN best ON text_unit = human_readable_id
)
SELECT t.human_readable_id AS number, d.human_readable_id AS document, t.start_char AS start, t.end_char AS end,
       nullif(concat_ws(', ', if(d.format IN ('pptx', 'odp'), 'slide ', 'page ') || t.page, 'sheet ' || t.sheet, t.time,
              'row ' || d.row_number, array_to_string(t.headings, ' › ')), '') AS place,
       CASE WHEN s.characters <= $characters THEN t.text END AS text
FROM text_units t
JOIN summed s ON s.number = t.human_readable_id
LEFT JOIN documents d ON d.id = t.document_id
ORDER BY document, t.ordinal, number

-- table: mentions
-- The text units that name each entity of the page, those that relate it to most others first, and the names they
-- give it; null where that is its title alone.
, named AS (
    SELECT entity_number AS entity, text_unit_number AS text_unit, list(DISTINCT title ORDER BY title) AS names
    FROM entity_mentions WHERE entity_number IN (SELECT number FROM on_page) GROUP BY ALL
)
SELECT entity, text_unit AS unit, CASE WHEN n.names <> [s.title] THEN n.names END AS names
FROM search.entity_text_units u JOIN on_page s ON s.number = u.entity LEFT JOIN named n USING (entity, text_unit)
ORDER BY entity, n_relationships DESC, text_unit

-- table: statements
-- The text units that state each relationship of the page.
SELECT relationship, text_unit AS unit
FROM search.relationship_text_units
WHERE relationship IN (SELECT number FROM relationships_on_page)
ORDER BY ALL

-- table: candidates
-- Pairs of names that may be one thing: undecided ones first, then by score.
SELECT row_number() OVER (ORDER BY decision <> '', score DESC NULLS LAST, name_key, other_key) AS number,
       n.human_readable_id AS "name", coalesce(n.title, name_key) AS name_title,
       o.human_readable_id AS other, coalesce(o.title, other_key) AS other_title,
       round(score, 2) AS score, evidence, documents, neighbors, decision, decided_by
FROM entity_candidates c
LEFT JOIN entities n ON n.title_key = name_key
LEFT JOIN entities o ON o.title_key = other_key
ORDER BY number
LIMIT $candidates
