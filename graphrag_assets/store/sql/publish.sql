-- Replaces the touched rows of a publication by those of a copy of the working database, attached as `working`.
-- Input, from Python: the temporary tables touched_* (id), which for a new publication have every id, see touched.sql,
-- and the view `claims` of those that nobody takes back.
-- Rows are sorted by the keys of searches, so that zone maps serve as indexes. Wide rows are read by rowid: a join by id
-- would read those beside them, too.

CREATE TEMP TABLE unit_numbers AS
SELECT id, human_readable_id AS number FROM working.numbers WHERE table_name = 'text_units';

-- By number: touched relationships; and entities whose rows, or whose relationships, are touched.
CREATE TEMP TABLE touched_links AS
SELECT human_readable_id AS relationship FROM relationships SEMI JOIN touched_relationships USING (id)
UNION SELECT human_readable_id FROM working.relationships SEMI JOIN touched_relationships USING (id);

CREATE TEMP TABLE touched_nodes AS
SELECT human_readable_id AS entity FROM entities SEMI JOIN touched_entities USING (id)
UNION SELECT human_readable_id FROM working.entities SEMI JOIN touched_entities USING (id)
UNION SELECT unnest([source_number, target_number]) FROM relationships SEMI JOIN touched_relationships USING (id);

DELETE FROM entities WHERE id IN (FROM touched_entities);
INSERT INTO entities BY NAME
SELECT e.*
FROM working.entities e
WHERE e.rowid IN (SELECT rowid FROM working.entities WHERE id IN (FROM touched_entities))
ORDER BY human_readable_id;

-- A combined degree changes with an entity, without its relationship being written.
CREATE TEMP TABLE combined_degrees AS
SELECT r.human_readable_id AS relationship, s.degree + t.degree AS sum
FROM relationships r
JOIN entities s ON s.human_readable_id = r.source_number
JOIN entities t ON t.human_readable_id = r.target_number
WHERE r.combined_degree <> s.degree + t.degree AND r.human_readable_id IN (
    SELECT human_readable_id FROM relationships WHERE source_number IN (FROM touched_nodes)
    UNION SELECT human_readable_id FROM relationships WHERE target_number IN (FROM touched_nodes)
);
UPDATE relationships SET combined_degree = c.sum FROM combined_degrees c WHERE human_readable_id = c.relationship;
UPDATE search.edges SET combined_degree = c.sum FROM combined_degrees c WHERE edges.relationship = c.relationship;

DELETE FROM relationships WHERE id IN (FROM touched_relationships);
INSERT INTO relationships BY NAME
WITH stated AS (
    SELECT r.id, min(d.document_date) AS valid_from, max(d.document_date) AS stated_on
    FROM (SELECT id, unnest(text_unit_ids) AS unit FROM working.relationships SEMI JOIN touched_relationships USING (id)) r
    JOIN working.text_units u ON u.id = r.unit
    JOIN (SELECT id, document_date FROM working.documents WHERE document_date IS NOT NULL) d ON d.id = u.document_id
    GROUP BY r.id
)
SELECT r.*, s.degree + t.degree AS combined_degree, s.human_readable_id AS source_number, t.human_readable_id AS target_number, d.stated_on, d.valid_from
FROM working.relationships r
JOIN working.entities s ON s.id = r.source_id
JOIN working.entities t ON t.id = r.target_id
LEFT JOIN stated d ON d.id = r.id
WHERE r.rowid IN (SELECT rowid FROM working.relationships WHERE id IN (FROM touched_relationships))
ORDER BY r.human_readable_id;

INSERT INTO touched_nodes
SELECT unnest([source_number, target_number]) FROM relationships SEMI JOIN touched_relationships USING (id)
EXCEPT FROM touched_nodes;

DELETE FROM search.relationship_text_units WHERE relationship IN (FROM touched_links);
INSERT INTO search.relationship_text_units
SELECT r.human_readable_id, n.number
FROM (
    SELECT human_readable_id, unnest(text_unit_ids) AS unit
    FROM working.relationships SEMI JOIN touched_relationships USING (id)
) r
JOIN unit_numbers n ON n.id = r.unit
ORDER BY ALL;

DELETE FROM search.edges WHERE relationship IN (FROM touched_links);
INSERT INTO search.edges
WITH touched AS (FROM relationships SEMI JOIN touched_relationships USING (id))
SELECT source_number, target_number, human_readable_id, weight, combined_degree FROM touched
UNION ALL
SELECT target_number, source_number, human_readable_id, weight, combined_degree FROM touched
ORDER BY ALL;

DELETE FROM search.entity_text_units WHERE entity IN (FROM touched_nodes);
INSERT INTO search.entity_text_units
WITH stated AS (
    SELECT e.entity, r.text_unit, count(*) AS n
    FROM search.edges e SEMI JOIN touched_nodes USING (entity) JOIN search.relationship_text_units r USING (relationship)
    GROUP BY ALL
), named AS (
    SELECT e.human_readable_id, unnest(e.text_unit_ids) AS unit
    FROM working.entities e SEMI JOIN touched_nodes n ON n.entity = e.human_readable_id
)
SELECT e.human_readable_id AS entity, n.number AS text_unit, coalesce(s.n, 0)
FROM named e
JOIN unit_numbers n ON n.id = e.unit
LEFT JOIN stated s ON s.entity = e.human_readable_id AND s.text_unit = n.number
ORDER BY ALL;

-- The entity of each name: by an alias of the document, else by an alias for all documents, else by its name.
CREATE TEMP TABLE entity_of_name AS
WITH accepted AS (SELECT document_id, alias_key, title_key FROM working.entity_aliases WHERE accepted),
names AS (
    SELECT document_id, title_key AS key FROM working.entity_mentions SEMI JOIN touched_entity_mentions USING (id)
    UNION SELECT document_id, unnest([source_key, target_key])
    FROM working.relationship_mentions SEMI JOIN touched_relationship_mentions USING (id)
    UNION SELECT document_id, unnest([subject_key, object_key]) FROM claims SEMI JOIN touched_covariates USING (id)
)
SELECT n.document_id, n.key, e.human_readable_id AS number
FROM names n
LEFT JOIN accepted here ON here.document_id = n.document_id AND here.alias_key = n.key
LEFT JOIN accepted everywhere ON everywhere.document_id IS NULL AND everywhere.alias_key = n.key
JOIN entities e ON e.title_key = coalesce(here.title_key, everywhere.title_key, n.key);

DELETE FROM covariates WHERE id IN (FROM touched_covariates);
INSERT INTO covariates BY NAME
WITH numbered AS (
SELECT c.* REPLACE (
           -- What extraction and imports write for a text that there is not.
           nullif(c.object_id, 'NONE') AS object_id, CASE WHEN c.object_id <> 'NONE' THEN c.object_key END AS object_key,
           nullif(c.type, 'NONE') AS type, nullif(c.source_text, 'NONE') AS source_text
       ), n.human_readable_id, u.number AS text_unit_number, d.document_date,
       -- Dates are as precise as known: 1866, 1866-07 or 1866-07-27.
       try_cast(CASE length(start_date) WHEN 4 THEN start_date || '-01-01' WHEN 7 THEN start_date || '-01'
                ELSE start_date END AS DATE) AS starts_on,
       CASE length(end_date) WHEN 4 THEN try_cast(end_date || '-12-31' AS DATE)
            WHEN 7 THEN last_day(try_cast(end_date || '-01' AS DATE)) ELSE try_cast(end_date AS DATE) END AS ends_on,
       s.number AS subject_number, o.number AS object_number
FROM claims c SEMI JOIN touched_covariates USING (id)
JOIN working.numbers n ON n.table_name = 'covariates' AND n.id = c.id
JOIN unit_numbers u ON u.id = c.text_unit_id
LEFT JOIN entity_of_name s ON s.document_id = c.document_id AND s.key = c.subject_key
LEFT JOIN entity_of_name o ON o.document_id = c.document_id AND o.key = c.object_key AND c.object_id <> 'NONE'
LEFT JOIN working.documents d ON d.id = c.document_id
)
SELECT * EXCLUDE (document_date), coalesce(document_date, starts_on, ends_on) AS stated_on,
       -- Of what held until a day it is not known since when.
       CASE WHEN starts_on IS NULL AND ends_on IS NOT NULL THEN NULL ELSE coalesce(starts_on, document_date) END AS valid_from, search.stated_end(start_date, end_date, ends_on) AS valid_until
FROM numbered ORDER BY subject_number, human_readable_id;

CREATE TEMP TABLE units AS
SELECT id, number AS text_unit FROM unit_numbers SEMI JOIN touched_text_units USING (id);

DELETE FROM text_units WHERE id IN (FROM touched_text_units);
INSERT INTO text_units BY NAME
WITH entities_of AS (
    SELECT b.text_unit, list(e.id ORDER BY e.id) AS entity_ids
    FROM search.entity_text_units b SEMI JOIN units USING (text_unit)
    JOIN entities e ON e.human_readable_id = b.entity GROUP BY ALL
), relationships_of AS (
    SELECT b.text_unit, list(r.id ORDER BY r.id) AS relationship_ids
    FROM search.relationship_text_units b SEMI JOIN units USING (text_unit)
    JOIN relationships r ON r.human_readable_id = b.relationship GROUP BY ALL
), covariates_of AS (
    SELECT text_unit_number AS text_unit, list(id ORDER BY id) AS covariate_ids
    FROM covariates SEMI JOIN units ON units.text_unit = text_unit_number GROUP BY ALL
)
-- Rows without a context, such as imported ones, get the title as context.
SELECT t.* REPLACE (coalesce(t.headings, [d.title]) AS headings,
       coalesce(t.context, d.title, '') AS context), n.text_unit AS human_readable_id,
       coalesce(e.entity_ids, []) AS entity_ids,
       coalesce(r.relationship_ids, []) AS relationship_ids, coalesce(c.covariate_ids, []) AS covariate_ids
FROM working.text_units t
JOIN units n USING (id)
LEFT JOIN working.documents d ON d.id = t.document_id
LEFT JOIN entities_of e USING (text_unit)
LEFT JOIN relationships_of r USING (text_unit)
LEFT JOIN covariates_of c USING (text_unit)
WHERE t.rowid IN (SELECT rowid FROM working.text_units WHERE id IN (FROM touched_text_units))
ORDER BY n.text_unit;

DELETE FROM documents WHERE id IN (FROM touched_documents);
INSERT INTO documents BY NAME
WITH units AS (
    SELECT document_id, list(id ORDER BY ordinal) AS text_unit_ids FROM working.text_units
    WHERE document_id IN (FROM touched_documents) GROUP BY ALL
)
SELECT d.*, n.human_readable_id, coalesce(u.text_unit_ids, []) AS text_unit_ids,
       try_cast(d.creation_date AS TIMESTAMP) AS created_at
FROM working.documents d
JOIN working.numbers n ON n.table_name = 'documents' AND n.id = d.id
LEFT JOIN units u ON u.document_id = d.id
WHERE d.rowid IN (SELECT rowid FROM working.documents WHERE id IN (FROM touched_documents))
ORDER BY n.human_readable_id;

DELETE FROM communities WHERE id IN (FROM touched_communities);
INSERT INTO communities BY NAME
SELECT *, try_cast(period AS DATE) AS period_date
FROM working.communities
WHERE rowid IN (SELECT rowid FROM working.communities WHERE id IN (FROM touched_communities))
ORDER BY community;

DELETE FROM community_reports WHERE id IN (FROM touched_community_reports);
INSERT INTO community_reports BY NAME
SELECT *, try_cast(period AS DATE) AS period_date
FROM working.community_reports
WHERE rowid IN (SELECT rowid FROM working.community_reports WHERE id IN (FROM touched_community_reports))
ORDER BY community;

DELETE FROM citations WHERE report_id IN (FROM touched_citations);
INSERT INTO citations BY NAME
SELECT c.* FROM working.citations c SEMI JOIN touched_citations t ON t.id = c.report_id ORDER BY ALL;

-- The communities of these entities, before and after.
CREATE TEMP TABLE touched_weights AS
SELECT DISTINCT community FROM search.entity_communities
WHERE entity IN (SELECT entity_number FROM community_members WHERE entity_id IN (FROM touched_community_members))
   OR entity IN (FROM touched_nodes);

DELETE FROM search.entity_communities WHERE entity IN (
    SELECT entity_number FROM community_members WHERE entity_id IN (FROM touched_community_members)
);
DELETE FROM community_members WHERE entity_id IN (FROM touched_community_members);
INSERT INTO community_members BY NAME
SELECT m.*, e.human_readable_id AS entity_number
FROM working.community_members m JOIN working.entities e ON e.id = m.entity_id
WHERE m.entity_id IN (FROM touched_community_members)
ORDER BY level, community, entity_number;

INSERT INTO search.entity_communities
SELECT entity_number, level, community FROM community_members
WHERE entity_id IN (FROM touched_community_members) ORDER BY ALL;

INSERT INTO touched_weights
SELECT DISTINCT community FROM search.entity_communities
WHERE entity IN (SELECT entity_number FROM community_members WHERE entity_id IN (FROM touched_community_members))
EXCEPT FROM touched_weights;
