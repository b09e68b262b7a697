-- Entities and relationships of all mentions. Input: `aliases`, those in force; `things`, the titles of things of split
-- names; and the parameters: the extractor whose mentions are counted, the fewest text units of a concept, what
-- descriptions are summarized with.

CREATE TEMP TABLE names AS  -- what a name stands for in a document: by an alias there, or else everywhere
WITH n AS (
    SELECT document_id, title_key AS key FROM entity_mentions
    UNION SELECT document_id, unnest([source_key, target_key]) FROM relationship_mentions
)
SELECT n.document_id, n.key AS own, coalesce(here.title_key, everywhere.title_key) AS key
FROM n LEFT JOIN aliases here ON here.document_id = n.document_id AND here.alias_key = n.key
LEFT JOIN aliases everywhere ON everywhere.document_id IS NULL AND everywhere.alias_key = n.key
WHERE coalesce(here.title_key, everywhere.title_key) IS NOT NULL;

-- Lines that more than half of the documents of a sample have, such as notices and signatures, and at least three: they
-- make neither names nor relationships. Documents that have nothing else do not count: they are copies of each other.
CREATE TEMP TABLE repeated AS
WITH sample AS (
    SELECT id AS document_id FROM documents ORDER BY id LIMIT 32
), lines AS (
    SELECT DISTINCT document_id, description FROM (
        SELECT document_id, description, extractor FROM entity_mentions
        UNION ALL SELECT document_id, description, extractor FROM relationship_mentions
    ) SEMI JOIN sample USING (document_id) WHERE starts_with(extractor, $embedded) AND description <> ''
), fewest AS (
    SELECT greatest(3, count(*) // 2 + 1) AS n FROM sample
), common AS (
    SELECT description FROM lines GROUP BY ALL HAVING count(*) >= (FROM fewest)
)
SELECT description FROM lines WHERE document_id IN (SELECT document_id FROM lines ANTI JOIN common USING (description))
GROUP BY ALL HAVING count(*) >= (FROM fewest);

CREATE TEMP TABLE named AS
SELECT coalesce(n.key, m.title_key) AS key, m.title_key AS own, m.title, m.type, m.description, m.n_sentences,
       m.text_unit_id, m.extractor, starts_with(m.extractor, $embedded) AS counted, d.document_date AS dated
FROM entity_mentions m
LEFT JOIN names n ON n.document_id = m.document_id AND n.own = m.title_key
LEFT JOIN documents d ON d.id = m.document_id
WHERE NOT (counted AND m.n_sentences = 1 AND m.description IN (FROM repeated));

CREATE TEMP TABLE left_out AS  -- names that people deny, and concepts that too few text units name
SELECT key FROM named WHERE extractor <> 'facts:not' GROUP BY key
HAVING bool_and(type = 'CONCEPT' AND counted) AND count(DISTINCT text_unit_id) < $fewest_units
UNION SELECT key FROM named WHERE extractor = 'facts:not'
UNION SELECT '';
DELETE FROM named WHERE key IN (FROM left_out);

-- What relates two names, which are in alphabetical order; forward: from the first to the second.
CREATE TEMP TABLE pairs AS
SELECT least(s, t) AS low, greatest(s, t) AS high, s < t AS forward, * EXCLUDE (s, t) FROM (
    SELECT coalesce(a.key, r.source_key) AS s, coalesce(b.key, r.target_key) AS t, r.source, r.target, r.type,
           r.description, r.strength, r.text_unit_id, r.extractor, starts_with(r.extractor, $embedded) AS counted,
           d.document_date AS dated
    FROM relationship_mentions r
    LEFT JOIN names a ON a.document_id = r.document_id AND a.own = r.source_key
    LEFT JOIN names b ON b.document_id = r.document_id AND b.own = r.target_key
    LEFT JOIN documents d ON d.id = r.document_id
    WHERE NOT (counted AND r.strength = 1 AND r.description IN (FROM repeated))
) WHERE s <> t AND s NOT IN (FROM left_out) AND t NOT IN (FROM left_out);
DELETE FROM pairs USING (SELECT low, high, type FROM pairs WHERE extractor = 'facts:not') denied
WHERE pairs.low = denied.low AND pairs.high = denied.high AND denied.type IN ('', pairs.type);

INSERT INTO named  -- ends of pairs that no extraction declares
SELECT key, key, title, 'UNKNOWN', description, 1, text_unit_id, extractor, counted, dated FROM (
    SELECT CASE WHEN forward THEN low ELSE high END AS key, source AS title, * FROM pairs
    UNION ALL SELECT CASE WHEN forward THEN high ELSE low END, target, * FROM pairs
) WHERE key NOT IN (SELECT key FROM named);

-- By a form of the name itself where there is one; an alias may lead to a name without. Of names that were accepted as
-- one, by the fullest.
CREATE TEMP TABLE titled AS
WITH accepted AS (
    SELECT alias_key AS own FROM aliases WHERE rule = 'decision'
), forms AS (
    SELECT key, title, coalesce(sum(n_sentences), 0) AS n, bool_or(own = key) AS own,
           bool_or(own IN (FROM accepted)) AS accepted, len(string_split(title, ' ')) AS words
    FROM named GROUP BY key, title
), best AS (
    SELECT key, CASE WHEN bool_or(accepted)
                     THEN arg_min(title, (-words, NOT own, -n, title)) FILTER (own OR accepted)
                     ELSE arg_min(title, (NOT own, -n, title)) END AS title, bool_or(own) AS own,
           nullif(regexp_extract(key, '( \(.+\))$', 1), '') AS qualifier
    FROM forms GROUP BY key
)
SELECT key, CASE WHEN b.own OR ends_with(b.title, ')') THEN b.title
            ELSE coalesce(b.title || b.qualifier, t.title, b.title) END AS title
FROM best b LEFT JOIN things t USING (key);

CREATE TEMP TABLE typed AS  -- the types of names, and of pairs; first the one shown
WITH given AS (
    SELECT key, '' AS high, type, count(*) AS n, max(dated) AS newest, bool_or(extractor = 'facts') AS stated,
           0.2 AS least_share  -- of a specific type before a generic one
    FROM named GROUP BY key, type
    UNION ALL SELECT low, high, type, count(*), max(dated), bool_or(extractor = 'facts'), 0 FROM pairs
    GROUP BY low, high, type
), ordered AS (
    SELECT *, row_number() OVER (
        PARTITION BY key, high
        ORDER BY NOT stated OR type = '', generic OR n < least_share * total, n DESC, newest DESC NULLS LAST, type
    ) AS place
    FROM (
        SELECT *, type IN ('', 'UNKNOWN', 'CONCEPT', 'NAME') AS generic, sum(n) OVER (PARTITION BY key, high) AS total
        FROM given
    )
)
SELECT key, high, min_by(type, place) AS type,
       coalesce(list({'type': type, 'n': n} ORDER BY place) FILTER (type <> ''), []) AS types
FROM ordered GROUP BY key, high;

CREATE TEMP TABLE said AS  -- the distinct descriptions of a name, and of a pair
SELECT key, '' AS high, t.title, description, count(*) AS n, max(dated) AS dated
FROM named JOIN titled t USING (key) WHERE description <> '' GROUP BY ALL
UNION ALL
SELECT low, high, low || ' – ' || high, description, count(*), max(dated) FROM pairs WHERE description <> '' GROUP BY ALL;

CREATE TEMP TABLE described AS  -- fingerprint: of what several descriptions are summarized from; a sum needs no order
SELECT key, high, CASE WHEN count(*) = 1 THEN any_value(description) END AS only, CASE WHEN count(*) > 1 THEN md5(
           concat_ws(chr(31), $made_with, any_value(title), sum(md5_number_lower(line)::HUGEINT),
                     sum(md5_number_upper(line)::HUGEINT))) END AS fingerprint
FROM (SELECT *, concat_ws(chr(31), description, n, dated) AS line FROM said) GROUP BY key, high;

-- Descriptions that are still to be summarized are null. Ids are hashes of the names, made for new ones only.
CREATE TEMP TABLE new_entities AS
WITH units AS (
    SELECT key, list(DISTINCT text_unit_id ORDER BY text_unit_id) AS text_unit_ids,
           (sum(n_sentences) FILTER (counted))::BIGINT AS n_sentences
    FROM named GROUP BY key
), ends AS (
    SELECT key, count(*) AS degree FROM (SELECT DISTINCT low, high FROM pairs) UNPIVOT (key FOR side IN (low, high))
    GROUP BY key
)
SELECT coalesce(o.id, entity_id(key)) AS id, n.title, t.type,
       CASE WHEN d.key IS NULL THEN '' WHEN d.fingerprint IS NULL THEN d.only
            WHEN d.fingerprint = k.fingerprint THEN o.description END AS description,
       u.text_unit_ids, len(u.text_unit_ids) AS frequency, coalesce(e.degree, 0) AS degree, u.n_sentences,
       key AS title_key, t.types, key, d.fingerprint
FROM titled n JOIN units u USING (key) JOIN typed t ON t.key = n.key AND t.high = ''
LEFT JOIN ends e ON e.key = n.key
LEFT JOIN described d ON d.key = n.key AND d.high = ''
LEFT JOIN entities o ON o.title_key = n.key
LEFT JOIN summarized k ON k.id = o.id;

CREATE TEMP TABLE new_relationships AS
WITH merged AS (
    SELECT low, high, avg(forward::INT) >= 0.5 AS forward, coalesce(sum(strength) FILTER (NOT counted), 0) AS stated,
           coalesce(sum(strength) FILTER (counted), 0) AS together,
           list(DISTINCT text_unit_id ORDER BY text_unit_id) AS text_unit_ids
    FROM pairs GROUP BY low, high
), along AS (  -- the direction of the type shown
    SELECT p.low, p.high, avg(p.forward::INT) >= 0.5 AS forward
    FROM pairs p JOIN typed t ON t.key = p.low AND t.high = p.high AND t.type = p.type
    WHERE p.type <> '' GROUP BY p.low, p.high
), directed AS (
    SELECT m.* REPLACE (coalesce(a.forward, m.forward) AS forward) FROM merged m LEFT JOIN along a USING (low, high)
), predicates AS (  -- of pairs with several
    SELECT low, high, type, forward, max(dated) AS newest FROM pairs WHERE type <> '' GROUP BY low, high, type, forward
    QUALIFY count(*) OVER (PARTITION BY low, high) > 1
), relations AS (
    SELECT low, high, string_agg(text, '; ' ORDER BY newest DESC NULLS LAST, type, text) AS relations FROM (
        SELECT p.*, CASE WHEN p.forward = d.forward THEN '' ELSE '← ' END || type || coalesce(' (' || newest || ')', '')
               AS text
        FROM predicates p JOIN directed d USING (low, high)
    ) GROUP BY low, high
), weighed AS (  -- a meeting counts half to fully, by the cosine of the sentences that name both
    SELECT d.*, l.id AS low_id, l.title AS low_title, h.id AS high_id, h.title AS high_title,
           together * (1 + least(1, together / sqrt(coalesce(l.n_sentences, 1)::DOUBLE * coalesce(h.n_sentences, 1))))
           / 2 AS met
    FROM directed d JOIN new_entities l ON l.key = d.low JOIN new_entities h ON h.key = d.high
)
SELECT coalesce(o.id, relationship_id(w.low, w.high)) AS id,
       CASE WHEN w.forward THEN low_title ELSE high_title END AS source,
       CASE WHEN w.forward THEN high_title ELSE low_title END AS target,
       CASE WHEN d.key IS NULL THEN '' WHEN d.fingerprint IS NULL THEN d.only
            WHEN d.fingerprint = k.fingerprint THEN o.description END AS description,
       -- Leiden needs a positive weight. With four digits, another sentence about a hub leaves nearly all its
       -- relationships as they are.
       round_even(greatest(w.stated + w.met, 0.01), 4) AS weight, w.text_unit_ids,
       CASE WHEN w.forward THEN low_id ELSE high_id END AS source_id,
       CASE WHEN w.forward THEN high_id ELSE low_id END AS target_id,
       t.type, coalesce(r.relations, '') AS relations, t.types, concat(w.low, chr(31), w.high) AS key, d.fingerprint
FROM weighed w JOIN typed t ON t.key = w.low AND t.high = w.high
LEFT JOIN described d ON d.key = w.low AND d.high = w.high
LEFT JOIN relations r ON r.low = w.low AND r.high = w.high
LEFT JOIN relationships o
ON least(o.source_id, o.target_id) = least(low_id, high_id) AND greatest(o.source_id, o.target_id) = greatest(low_id, high_id)
LEFT JOIN summarized k ON k.id = o.id;
