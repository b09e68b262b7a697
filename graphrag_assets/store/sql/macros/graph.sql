-- Traversal of relationships, one hop after the other. The columns of the recursive tables are qualified: an argument may
-- have their names.

CREATE OR REPLACE MACRO neighbors(title, hops := 1) AS TABLE
WITH RECURSIVE _g_neighbors AS MATERIALIZED (SELECT title AS _g_title, hops AS _g_hops),
met(entity, hop, via, relationship, weight) USING KEY (entity) AS (
    SELECT c.entity, 0::BIGINT, NULL::BIGINT, NULL::BIGINT, NULL::DOUBLE
    FROM this.entities_called((SELECT CASE WHEN g._g_hops BETWEEN 1 AND 4 THEN g._g_title
                                     ELSE error('neighbors: hops must be 1 to 4.') END FROM _g_neighbors g)) c
    UNION ALL
    SELECT n.entity, n.hop, n.via, n.relationship, n.weight FROM (
        SELECT e.neighbor AS entity, m.hop + 1 AS hop, m.entity AS via, e.relationship, e.weight, row_number() OVER (
                   PARTITION BY e.neighbor ORDER BY e.weight DESC, e.relationship) AS place
        FROM met m JOIN this.edges e ON e.entity = m.entity
        WHERE m.hop < (SELECT g._g_hops FROM _g_neighbors g)
          AND e.neighbor NOT IN (SELECT b.entity FROM recurring.met b)
    ) n WHERE n.place = 1
), named AS MATERIALIZED (
    SELECT n.human_readable_id, n.title, n.type, n.degree
    FROM (SELECT m.entity FROM met m) m JOIN this.entities n ON n.human_readable_id = m.entity
)
SELECT m.hop, e.title, e.type, e.degree, v.title AS via, r.type AS relationship_type, m.weight, r.description,
       e.human_readable_id, m.relationship AS relationship_number
FROM met m
JOIN named e ON e.human_readable_id = m.entity
JOIN named v ON v.human_readable_id = m.via
JOIN this.relationships r ON r.human_readable_id = m.relationship
ORDER BY m.hop, m.weight DESC, e.human_readable_id;
COMMENT ON MACRO TABLE neighbors IS
    'The entities up to so many hops (1 to 4) away, nearest first, each with the strongest relationship that leads there from one hop nearer (via).';

-- Each entity has the heaviest of the shortest ways to it. The search ends where it meets b.
CREATE OR REPLACE MACRO path_between(a, b, max_hops := 4) AS TABLE
WITH RECURSIVE _g_path AS MATERIALIZED (SELECT a AS _g_a, b AS _g_b, max_hops AS _g_hops),
goal AS MATERIALIZED (SELECT c.entity FROM this.entities_called((SELECT p._g_b FROM _g_path p)) c),
met(entity, nodes, relationships, weight) USING KEY (entity) AS (
    SELECT c.entity, [c.entity], []::BIGINT[], 0::DOUBLE
    FROM this.entities_called((SELECT CASE WHEN p._g_hops BETWEEN 1 AND 6 THEN p._g_a
                                     ELSE error('path_between: max_hops must be 1 to 6.') END FROM _g_path p)) c
    UNION ALL
    SELECT n.entity, n.nodes, n.relationships, n.weight FROM (
        SELECT e.neighbor AS entity, list_append(m.nodes, e.neighbor) AS nodes,
               list_append(m.relationships, e.relationship) AS relationships, m.weight + e.weight AS weight,
               row_number() OVER (PARTITION BY e.neighbor ORDER BY m.weight + e.weight DESC, e.relationship) AS place
        FROM met m JOIN this.edges e ON e.entity = m.entity
        WHERE len(m.relationships) < (SELECT p._g_hops FROM _g_path p)
          AND e.neighbor NOT IN (SELECT b.entity FROM recurring.met b)
          AND NOT EXISTS (SELECT b.entity FROM recurring.met b JOIN goal g ON g.entity = b.entity)
    ) n WHERE n.place = 1
), steps AS MATERIALIZED (
    SELECT unnest(m.relationships) AS relationship, unnest(m.nodes[:-2]) AS near, unnest(m.nodes[2:]) AS far,
           unnest(range(1, len(m.nodes))) AS step
    FROM met m JOIN goal g ON g.entity = m.entity
)
SELECT s.step, n.title AS "from", r.type AS relationship_type, r.description, t.title AS "to", r.weight, s.relationship AS relationship_number
FROM steps s
JOIN this.relationships r ON r.human_readable_id = s.relationship
JOIN this.entities n ON n.human_readable_id = s.near
JOIN this.entities t ON t.human_readable_id = s.far
ORDER BY s.step;
COMMENT ON MACRO TABLE path_between IS
    'The shortest way from one entity to another, step by step; of several the one with the greatest weight. No rows: none within max_hops (1 to 6). A call for each row of a table costs a search for each: take a few.';
