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
