-- Traversal of relationships. A recursive query reads all edges at each step; one join per step reads only those met.

CREATE OR REPLACE MACRO neighbors(title, hops := 1) AS TABLE
WITH _g_neighbors AS MATERIALIZED (SELECT title AS _g_title, hops AS _g_hops),
h0 AS MATERIALIZED (
    FROM own.entities_called((SELECT CASE WHEN g._g_hops BETWEEN 1 AND 4 THEN g._g_title
                                      ELSE error('neighbors: hops must be 1 to 4.') END FROM _g_neighbors g))
),
{hops}
met AS MATERIALIZED (
    FROM h1 UNION ALL FROM h2 UNION ALL FROM h3 UNION ALL FROM h4
), named AS MATERIALIZED (
    SELECT n.human_readable_id, n.title, n.type, n.degree
    FROM (SELECT m.entity FROM met m UNION SELECT m.best.via FROM met m) m JOIN own.entities n ON n.human_readable_id = m.entity
)
SELECT m.hop, e.title, e.type, e.degree, v.title AS via, r.type AS relationship_type, m.best.weight AS weight, r.description,
       e.human_readable_id, m.best.relationship AS relationship_number
FROM met m
JOIN named e ON e.human_readable_id = m.entity
JOIN named v ON v.human_readable_id = m.best.via
JOIN own.relationships r ON r.human_readable_id = m.best.relationship
ORDER BY m.hop, m.best.weight DESC, e.human_readable_id;
COMMENT ON MACRO TABLE neighbors IS
    'The entities up to so many hops (1 to 4) away, nearest first, each with the strongest relationship that leads there from one hop nearer (via).';

-- For path_between: the way with one step more.
CREATE MACRO own.longer_way(way, node, relationship, weight) AS {
    'nodes': list_append(way.nodes, node),
    'relationships': list_append(way.relationships, relationship),
    'weight': way.weight + weight
};

-- From both ends in turn, until they meet: f1, g1, f2, … are the entities n hops from a and from b, each with the
-- heaviest of the shortest ways to it. The search stops where they meet (m1, m2, …).
CREATE OR REPLACE MACRO path_between(a, b, max_hops := 4) AS TABLE
WITH _g_path AS MATERIALIZED (SELECT a AS _g_a, b AS _g_b, max_hops AS _g_hops),
f0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::BIGINT[], 'weight': 0::DOUBLE} AS way
    FROM own.entities_called((SELECT CASE WHEN p._g_hops BETWEEN 1 AND 6 THEN p._g_a
                                      ELSE error('path_between: max_hops must be 1 to 6.') END FROM _g_path p)) c
), g0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::BIGINT[], 'weight': 0::DOUBLE} AS way
    FROM own.entities_called((SELECT p._g_b FROM _g_path p)) c
), m0 AS MATERIALIZED (
    SELECT f.way AS there, g.way AS back FROM f0 f JOIN g0 g ON g.entity = f.entity
),
{steps}
steps AS MATERIALIZED (
    SELECT unnest(list_concat(m.there.relationships, list_reverse(m.back.relationships))) AS relationship,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[:-2]) AS near,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[2:]) AS far,
           unnest(range(1, len(m.there.relationships) + len(m.back.relationships) + 1)) AS step
    FROM m6 m
)
SELECT s.step, n.title AS "from", r.type AS relationship_type, r.description, t.title AS "to", r.weight, s.relationship AS relationship_number
FROM steps s
JOIN own.relationships r ON r.human_readable_id = s.relationship
JOIN own.entities n ON n.human_readable_id = s.near
JOIN own.entities t ON t.human_readable_id = s.far
WHERE r.human_readable_id IN (SELECT o.relationship FROM steps o)
  AND n.human_readable_id IN (SELECT o.near FROM steps o) AND t.human_readable_id IN (SELECT o.far FROM steps o)
ORDER BY s.step;
COMMENT ON MACRO TABLE path_between IS
    'The shortest way from one entity to another, step by step; of several the one with the greatest weight. No rows: none within max_hops (1 to 6). A call for each row of a table costs a search for each: take a few.';

CREATE OR REPLACE MACRO community_tree(level := NULL) AS TABLE
WITH RECURSIVE _g_community_tree AS MATERIALIZED (SELECT level AS _g_level),
tree AS (
    SELECT c.community, c.level AS depth, c.parent, c.size, [{'size': -c.size, 'community': c.community}] AS place
    FROM own.communities c WHERE c.level = 0
    UNION ALL
    SELECT c.community, c.level, c.parent, c.size,
           list_append(t.place, {'size': -c.size, 'community': c.community})
    FROM own.communities c JOIN tree t ON c.parent = t.community
)
SELECT t.depth AS level, t.community, t.parent, t.size, repeat('  ', t.depth) || coalesce(r.title, c.title) AS title,
       r.rank, r.summary
FROM tree t JOIN own.communities c ON c.community = t.community LEFT JOIN own.community_reports r ON r.community = t.community
WHERE t.depth <= coalesce((SELECT g._g_level FROM _g_community_tree g), t.depth)
ORDER BY t.place;
COMMENT ON MACRO TABLE community_tree IS
    'The hierarchy of communities down to the level (default: all), each below its parent, the largest first, with the title of its report. Recursive: one step for each level.';

CREATE OR REPLACE MACRO community_changes(before) AS TABLE
SELECT c.change, c.title, c.level_before, c.level_after, c.size_before, c.size_after, c.jaccard, c.title_before, c.id, c.other_id
FROM ({changed_communities}) c ORDER BY coalesce(c.level_after, c.level_before), c.change, c.id, c.other_id;
COMMENT ON MACRO TABLE community_changes IS
    'What has happened to communities since another publication, the name of an attached database: born, died, changed, renamed, split or merged. jaccard: the overlap of members.';

CREATE OR REPLACE MACRO co_mentions(title, k := 20) AS TABLE
WITH _g_co_mentions AS MATERIALIZED (SELECT title AS _g_title),
called AS MATERIALIZED (FROM own.entities_called((SELECT g._g_title FROM _g_co_mentions g))),
units AS MATERIALIZED (
    SELECT DISTINCT u.text_unit FROM called c JOIN own.entity_text_units u ON u.entity = c.entity
), counted AS (
    SELECT m.entity, count(DISTINCT m.text_unit) AS text_units, count(DISTINCT t.document_id) AS documents
    FROM units u JOIN own.entity_text_units m ON m.text_unit = u.text_unit
    JOIN own.text_units t ON t.human_readable_id = u.text_unit
    WHERE m.entity NOT IN (SELECT c.entity FROM called c) GROUP BY m.entity
), tied AS (
    SELECT e.neighbor AS entity, max_by(e.relationship, (e.weight, -e.relationship)) AS relationship
    FROM called c JOIN own.edges e ON e.entity = c.entity GROUP BY e.neighbor
)
SELECT e.title, e.type, n.text_units, n.documents, e.frequency, r.relationship AS relationship_number, e.human_readable_id, e.id
FROM counted n JOIN own.entities e ON e.human_readable_id = n.entity LEFT JOIN tied r ON r.entity = n.entity
ORDER BY n.text_units DESC, n.documents DESC, e.frequency, e.human_readable_id LIMIT greatest(coalesce(k, 20), 0);
COMMENT ON MACRO TABLE co_mentions IS
    'The entities that are mentioned in the same text units, with the numbers of these text units and of their documents. relationship_number: the strongest relationship of both; null if there is none.';

CREATE OR REPLACE MACRO similar_entities(title, k := 10) AS TABLE
WITH _g_similar_entities AS MATERIALIZED (SELECT title AS _g_title),
called AS MATERIALIZED (FROM own.entities_called((SELECT g._g_title FROM _g_similar_entities g))),
near AS MATERIALIZED (
    SELECT DISTINCT e.neighbor AS entity FROM called c JOIN own.edges e ON e.entity = c.entity
    WHERE e.neighbor NOT IN (SELECT o.entity FROM called o)
), shared AS (
    SELECT e.neighbor AS entity, count(DISTINCT n.entity) AS common,
           list(DISTINCT n.entity ORDER BY n.entity) AS neighbors
    FROM near n JOIN own.edges e ON e.entity = n.entity
    WHERE e.neighbor NOT IN (SELECT o.entity FROM called o) GROUP BY e.neighbor
), scored AS (
    SELECT s.entity, s.common, s.common / (e.degree + (SELECT count(*) FROM near n) - s.common) AS score, s.neighbors
    FROM shared s JOIN own.entities e ON e.human_readable_id = s.entity
), best AS MATERIALIZED (
    SELECT s.entity, s.common, s.score, s.neighbors FROM scored s
    ORDER BY s.score DESC, s.common DESC, s.entity LIMIT greatest(coalesce(k, 10), 0)
), titled AS (
    SELECT b.entity, list(n.title ORDER BY n.title) AS neighbors
    FROM (SELECT o.entity, unnest(o.neighbors) AS neighbor FROM best o) b
    JOIN own.entities n ON n.human_readable_id = b.neighbor GROUP BY b.entity
)
SELECT e.title, e.type, round(b.score, 4) AS score, b.common, t.neighbors, e.human_readable_id, e.id
FROM best b JOIN titled t ON t.entity = b.entity JOIN own.entities e ON e.human_readable_id = b.entity
ORDER BY b.score DESC, b.common DESC, b.entity;
COMMENT ON MACRO TABLE similar_entities IS
    'The entities with the most similar neighbors: the share of common neighbors among those of both (Jaccard), their number and titles.';

CREATE OR REPLACE MACRO candidates_of(title, min_score := 0.0) AS TABLE
WITH _g_candidates_of AS MATERIALIZED (SELECT title AS _g_title, min_score AS _g_min_score),
wanted AS MATERIALIZED (
    SELECT coalesce(e.title_key, own.title_key(g._g_title)) AS key, g._g_min_score AS min_score
    FROM _g_candidates_of g LEFT JOIN own.entities e ON e.human_readable_id = own.entity_number(g._g_title)
)
SELECT CASE WHEN c.name_key = w.key THEN c.other_key ELSE c.name_key END AS name, e.title AS entity, c.score, c.evidence,
       c.documents, c.neighbors, c.decision, c.decided_by
FROM own.entity_candidates c
JOIN wanted w ON w.key IN (c.name_key, c.other_key)
LEFT JOIN own.entities e ON e.title_key = CASE WHEN c.name_key = w.key THEN c.other_key ELSE c.name_key END
WHERE coalesce(c.score, 1) >= w.min_score
ORDER BY c.score DESC NULLS LAST, name;
COMMENT ON MACRO TABLE candidates_of IS
    'The names that may be one thing with a name, best first, with the evidence and what has been decided.';
