-- Traversal of relationships. A recursive query reads all edges at each step; one join per step reads only those met.

CREATE OR REPLACE MACRO neighbors(title, hops := 1) AS TABLE
WITH h0 AS MATERIALIZED (
    FROM entities_called(CASE WHEN hops BETWEEN 1 AND 4 THEN title ELSE error('neighbors: hops must be 1 to 4.') END)
), h1 AS MATERIALIZED (
    SELECT 1 AS hop, e.neighbor AS entity, max_by(
        {'via': e.entity, 'relationship': e.relationship, 'weight': e.weight}, (e.weight, -e.relationship)) AS best
    FROM search.edges e WHERE e.entity IN (FROM h0) AND e.neighbor NOT IN (FROM h0) GROUP BY e.neighbor
), h2 AS MATERIALIZED (
    SELECT 2 AS hop, e.neighbor AS entity, max_by(
        {'via': e.entity, 'relationship': e.relationship, 'weight': e.weight}, (e.weight, -e.relationship)) AS best
    FROM search.edges e WHERE hops >= 2 AND e.entity IN (SELECT h.entity FROM h1 h)
      AND e.neighbor NOT IN (FROM h0 UNION ALL SELECT h.entity FROM h1 h) GROUP BY e.neighbor
), h3 AS MATERIALIZED (
    SELECT 3 AS hop, e.neighbor AS entity, max_by(
        {'via': e.entity, 'relationship': e.relationship, 'weight': e.weight}, (e.weight, -e.relationship)) AS best
    FROM search.edges e WHERE hops >= 3 AND e.entity IN (SELECT h.entity FROM h2 h)
      AND e.neighbor NOT IN (SELECT h.entity FROM h1 h UNION ALL SELECT h.entity FROM h2 h) GROUP BY e.neighbor
), h4 AS MATERIALIZED (
    SELECT 4 AS hop, e.neighbor AS entity, max_by(
        {'via': e.entity, 'relationship': e.relationship, 'weight': e.weight}, (e.weight, -e.relationship)) AS best
    FROM search.edges e WHERE hops >= 4 AND e.entity IN (SELECT h.entity FROM h3 h)
      AND e.neighbor NOT IN (SELECT h.entity FROM h2 h UNION ALL SELECT h.entity FROM h3 h) GROUP BY e.neighbor
), met AS MATERIALIZED (
    FROM h1 UNION ALL FROM h2 UNION ALL FROM h3 UNION ALL FROM h4
), named AS MATERIALIZED (
    SELECT n.human_readable_id, n.title, n.type, n.degree FROM entities n
    WHERE n.human_readable_id IN (SELECT m.entity FROM met m UNION SELECT m.best.via FROM met m)
)
SELECT m.hop, e.title, e.type, e.degree, v.title AS via, r.type AS relationship_type, m.best.weight AS weight, r.description,
       e.human_readable_id, m.best.relationship AS relationship
FROM met m
JOIN named e ON e.human_readable_id = m.entity
JOIN named v ON v.human_readable_id = m.best.via
JOIN relationships r ON r.human_readable_id = m.best.relationship
WHERE r.human_readable_id IN (SELECT o.best.relationship FROM met o)
ORDER BY m.hop, m.best.weight DESC, e.human_readable_id;
COMMENT ON MACRO TABLE neighbors IS
    'The entities up to so many hops (1 to 4) away, nearest first, each with the strongest relationship that leads there from one hop nearer (via).';

CREATE OR REPLACE MACRO neighbours(title, hops := 1) AS TABLE FROM neighbors(title, hops);
COMMENT ON MACRO TABLE neighbours IS 'British spelling of neighbors.';

CREATE OR REPLACE MACRO typed_relationships(entities) AS TABLE
SELECT r.source, r.target, r.type, r.weight, r.description, r.human_readable_id
FROM relationships r
WHERE (r.source_number IN (SELECT unnest(entities)) OR r.target_number IN (SELECT unnest(entities))) AND r.type <> ''
ORDER BY r.weight DESC, r.human_readable_id;
COMMENT ON MACRO TABLE typed_relationships IS
    'The relationships of these entities (human_readable_ids) that have a type, the heaviest first.';

CREATE OR REPLACE MACRO search.longer_way(way, node, relationship, weight) AS {
    'nodes': list_append(way.nodes, node),
    'relationships': list_append(way.relationships, relationship),
    'weight': way.weight + weight
};
COMMENT ON MACRO search.longer_way IS 'Helper of path_between: the way with one step more.';

-- From both ends in turn, until they meet: f1, g1, f2, … are the entities n hops from a and from b, each with the
-- heaviest of the shortest ways to it. The search stops where they meet.
CREATE OR REPLACE MACRO path_between(a, b, max_hops := 4) AS TABLE
WITH f0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::INTEGER[], 'weight': 0::DOUBLE} AS way
    FROM entities_called(CASE WHEN max_hops BETWEEN 1 AND 6 THEN a
                              ELSE error('path_between: max_hops must be 1 to 6.') END) c
), g0 AS MATERIALIZED (
    SELECT c.entity, {'nodes': [c.entity], 'relationships': []::INTEGER[], 'weight': 0::DOUBLE} AS way
    FROM entities_called(b) c
), m0 AS MATERIALIZED (
    SELECT f.way AS there, g.way AS back FROM f0 f JOIN g0 g ON g.entity = f.entity
), f1 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(f.way, e.neighbor, e.relationship, e.weight),
                                         (f.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN f0 f ON f.entity = e.entity WHERE NOT EXISTS (FROM m0) GROUP BY e.neighbor
), m1 AS MATERIALIZED (
    FROM m0 UNION ALL (SELECT f.way, g.way FROM f1 f JOIN g0 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), g1 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(g.way, e.neighbor, e.relationship, e.weight),
                                         (g.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN g0 g ON g.entity = e.entity WHERE max_hops >= 2 AND NOT EXISTS (FROM m1) GROUP BY e.neighbor
), m2 AS MATERIALIZED (
    FROM m1 UNION ALL (SELECT f.way, g.way FROM f1 f JOIN g1 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), f2 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(f.way, e.neighbor, e.relationship, e.weight),
                                         (f.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN f1 f ON f.entity = e.entity WHERE max_hops >= 3 AND NOT EXISTS (FROM m2)
     AND e.neighbor NOT IN (SELECT o.entity FROM f0 o UNION ALL SELECT o.entity FROM f1 o) GROUP BY e.neighbor
), m3 AS MATERIALIZED (
    FROM m2 UNION ALL (SELECT f.way, g.way FROM f2 f JOIN g1 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), g2 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(g.way, e.neighbor, e.relationship, e.weight),
                                         (g.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN g1 g ON g.entity = e.entity WHERE max_hops >= 4 AND NOT EXISTS (FROM m3)
     AND e.neighbor NOT IN (SELECT o.entity FROM g0 o UNION ALL SELECT o.entity FROM g1 o) GROUP BY e.neighbor
), m4 AS MATERIALIZED (
    FROM m3 UNION ALL (SELECT f.way, g.way FROM f2 f JOIN g2 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), f3 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(f.way, e.neighbor, e.relationship, e.weight),
                                         (f.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN f2 f ON f.entity = e.entity WHERE max_hops >= 5 AND NOT EXISTS (FROM m4)
     AND e.neighbor NOT IN (SELECT o.entity FROM f1 o UNION ALL SELECT o.entity FROM f2 o) GROUP BY e.neighbor
), m5 AS MATERIALIZED (
    FROM m4 UNION ALL (SELECT f.way, g.way FROM f3 f JOIN g2 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), g3 AS MATERIALIZED (
    SELECT e.neighbor AS entity, max_by(search.longer_way(g.way, e.neighbor, e.relationship, e.weight),
                                         (g.way.weight + e.weight, -e.relationship)) AS way
    FROM search.edges e JOIN g2 g ON g.entity = e.entity WHERE max_hops >= 6 AND NOT EXISTS (FROM m5)
     AND e.neighbor NOT IN (SELECT o.entity FROM g1 o UNION ALL SELECT o.entity FROM g2 o) GROUP BY e.neighbor
), m6 AS MATERIALIZED (
    FROM m5 UNION ALL (SELECT f.way, g.way FROM f3 f JOIN g3 g ON g.entity = f.entity
                       ORDER BY f.way.weight + g.way.weight DESC, f.entity LIMIT 1)
), steps AS MATERIALIZED (
    SELECT unnest(list_concat(m.there.relationships, list_reverse(m.back.relationships))) AS relationship,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[:-2]) AS near,
           unnest(list_concat(m.there.nodes, list_reverse(m.back.nodes)[2:])[2:]) AS far,
           unnest(range(1, len(m.there.relationships) + len(m.back.relationships) + 1)) AS step
    FROM m6 m
)
SELECT s.step, n.title AS "from", r.type AS relationship_type, r.description, t.title AS "to", r.weight, s.relationship
FROM steps s
JOIN relationships r ON r.human_readable_id = s.relationship
JOIN entities n ON n.human_readable_id = s.near
JOIN entities t ON t.human_readable_id = s.far
WHERE r.human_readable_id IN (SELECT o.relationship FROM steps o)
  AND n.human_readable_id IN (SELECT o.near FROM steps o) AND t.human_readable_id IN (SELECT o.far FROM steps o)
ORDER BY s.step;
COMMENT ON MACRO TABLE path_between IS
    'The shortest way from one entity to another, step by step; of several the one with the greatest weight. No rows: none within max_hops (1 to 6).';

CREATE OR REPLACE MACRO community_tree(level := NULL) AS TABLE
WITH RECURSIVE tree AS (
    SELECT c.community, c.level AS depth, c.parent, c.size, [{'size': -c.size, 'community': c.community}] AS place
    FROM communities c WHERE c.level = 0
    UNION ALL
    SELECT c.community, c.level, c.parent, c.size,
           list_append(t.place, {'size': -c.size, 'community': c.community})
    FROM communities c JOIN tree t ON c.parent = t.community
    WHERE c.level <= coalesce(level, c.level)
)
SELECT t.depth AS level, t.community, t.parent, t.size, repeat('  ', t.depth) || coalesce(r.title, c.title) AS title,
       r.rank, r.summary
FROM tree t JOIN communities c ON c.community = t.community LEFT JOIN community_reports r ON r.community = t.community
ORDER BY t.place;
COMMENT ON MACRO TABLE community_tree IS
    'The hierarchy of communities down to the level (default: all), each below its parent, the largest first, with the title of its report.';

CREATE OR REPLACE MACRO candidates_of(title, min_score := 0.0) AS TABLE
WITH wanted AS (SELECT title_key(title) AS key)
SELECT CASE WHEN c.name_key = w.key THEN c.other_key ELSE c.name_key END AS name, e.title AS entity, c.score, c.evidence,
       c.documents, c.neighbors, c.decision, c.decided_by
FROM entity_candidates c
JOIN wanted w ON w.key IN (c.name_key, c.other_key)
LEFT JOIN entities e ON e.title_key = CASE WHEN c.name_key = w.key THEN c.other_key ELSE c.name_key END
WHERE coalesce(c.score, 1) >= min_score
ORDER BY c.score DESC NULLS LAST, name;
COMMENT ON MACRO TABLE candidates_of IS
    'The names that may be one thing with a name, best first, with the evidence and what has been decided.';
