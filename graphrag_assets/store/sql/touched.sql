-- Which rows of the last publication differ from the working database, attached as `working`, or may differ.
-- Input, from Python: the temporary table changed_rows (table_name, id) from the change log, and empty tables
-- touched_* (id); and the view `claims` of those that nobody takes back.

-- Rows that were written, appeared or vanished.
INSERT INTO touched_entities SELECT DISTINCT id FROM changed_rows WHERE table_name = 'entities';
INSERT INTO touched_relationships SELECT DISTINCT id FROM changed_rows WHERE table_name = 'relationships';

-- Documents, text units and claims that lacked a number at the last publication have it now.
CREATE TEMP TABLE new_or_gone_units AS
(SELECT id FROM text_units EXCEPT SELECT id FROM working.text_units)
UNION (SELECT id FROM working.text_units EXCEPT SELECT id FROM text_units);

CREATE TEMP TABLE new_or_gone_entities AS
WITH before AS (
    SELECT id, title_key FROM entities WHERE id IN (FROM touched_entities)
), now AS (
    SELECT id, title_key FROM working.entities WHERE id IN (FROM touched_entities)
)
(FROM before EXCEPT FROM now) UNION (FROM now EXCEPT FROM before);

-- Names that lead to another entity than before, or to none.
CREATE TEMP TABLE changed_names AS
WITH aliases AS (
    SELECT document_id, alias_key, title_key, accepted FROM entity_aliases
), now AS (
    SELECT document_id, alias_key, title_key, accepted FROM working.entity_aliases
), aliases_changed AS (
    (FROM aliases EXCEPT FROM now) UNION (FROM now EXCEPT FROM aliases)
)
SELECT title_key AS name FROM new_or_gone_entities
UNION SELECT alias_key FROM working.entity_aliases
WHERE accepted AND title_key IN (SELECT title_key FROM new_or_gone_entities)
UNION SELECT alias_key FROM aliases_changed
UNION SELECT title_key FROM aliases_changed;

INSERT INTO touched_covariates
SELECT id FROM changed_rows WHERE table_name = 'covariates'
UNION (SELECT id FROM covariates EXCEPT SELECT id FROM claims)
UNION (SELECT id FROM claims EXCEPT SELECT id FROM covariates)
UNION SELECT id FROM claims WHERE subject_key IN (FROM changed_names)
UNION SELECT id FROM claims WHERE object_key IN (FROM changed_names);

INSERT INTO touched_entity_mentions
SELECT id FROM changed_rows WHERE table_name = 'entity_mentions'
UNION SELECT id FROM working.entity_mentions WHERE title_key IN (FROM changed_names)
UNION SELECT id FROM working.entity_mentions WHERE text_unit_id IN (FROM new_or_gone_units);

-- Pairs of numbers of entities that are related now, and were not.
CREATE TEMP TABLE related_now AS
WITH appeared AS (
    SELECT source_id, target_id FROM working.relationships WHERE id IN (
        FROM touched_relationships EXCEPT (SELECT id FROM relationships WHERE id IN (FROM touched_relationships))
    )
)
SELECT least(s.human_readable_id, t.human_readable_id) AS low, greatest(s.human_readable_id, t.human_readable_id) AS high
FROM appeared JOIN working.entities s ON s.id = source_id JOIN working.entities t ON t.id = target_id;

INSERT INTO touched_relationship_mentions
SELECT id FROM changed_rows WHERE table_name = 'relationship_mentions'
UNION SELECT id FROM working.relationship_mentions WHERE source_key IN (FROM changed_names)
UNION SELECT id FROM working.relationship_mentions WHERE target_key IN (FROM changed_names)
UNION SELECT id FROM working.relationship_mentions WHERE text_unit_id IN (FROM new_or_gone_units)
UNION SELECT m.id FROM relationship_mentions m JOIN relationships r ON r.human_readable_id = m.relationship_number
WHERE r.id IN (
    FROM touched_relationships EXCEPT (SELECT id FROM working.relationships WHERE id IN (FROM touched_relationships))
)
UNION SELECT m.id FROM relationship_mentions m
JOIN related_now ON low = least(source_number, target_number) AND high = greatest(source_number, target_number)
WHERE relationship_number IS NULL;

INSERT INTO touched_documents
SELECT id FROM changed_rows WHERE table_name = 'documents'
UNION (SELECT id FROM documents EXCEPT SELECT id FROM working.documents)
UNION (SELECT id FROM working.documents EXCEPT SELECT id FROM documents)
UNION SELECT document_id FROM working.text_units
WHERE id IN (SELECT id FROM changed_rows WHERE table_name = 'text_units' UNION FROM new_or_gone_units)
UNION SELECT document_id FROM text_units WHERE id IN (FROM new_or_gone_units);

-- Documents whose text units show something else of them: title, date, language.
CREATE TEMP TABLE described_anew AS
SELECT new.id FROM working.documents new JOIN documents old USING (id)
WHERE new.id IN (FROM touched_documents)
  AND (new.title, new.document_date, new.language) IS DISTINCT FROM (old.title, old.document_date, old.language);

-- Statements have the date of their document.
CREATE TEMP TABLE dated_anew AS
SELECT new.id FROM working.documents new JOIN documents old USING (id)
WHERE new.id IN (FROM touched_documents) AND new.document_date IS DISTINCT FROM old.document_date;
INSERT INTO touched_covariates
SELECT id FROM claims WHERE document_id IN (FROM dated_anew) EXCEPT FROM touched_covariates;
INSERT INTO touched_relationships
SELECT r.id FROM relationships r JOIN relationship_mentions m ON m.relationship_number = r.human_readable_id
WHERE m.document_id IN (FROM dated_anew) EXCEPT FROM touched_relationships;

-- Text units list what is named and stated in them.
INSERT INTO touched_text_units
WITH named AS (
    SELECT id, unnest(text_unit_ids) AS unit FROM entities
    WHERE rowid IN (SELECT rowid FROM entities WHERE id IN (FROM touched_entities))
), named_now AS (
    SELECT id, unnest(text_unit_ids) AS unit FROM working.entities
    WHERE rowid IN (SELECT rowid FROM working.entities WHERE id IN (FROM touched_entities))
), stated AS (
    SELECT id, unnest(text_unit_ids) AS unit FROM relationships
    WHERE rowid IN (SELECT rowid FROM relationships WHERE id IN (FROM touched_relationships))
), stated_now AS (
    SELECT id, unnest(text_unit_ids) AS unit FROM working.relationships
    WHERE rowid IN (SELECT rowid FROM working.relationships WHERE id IN (FROM touched_relationships))
), listed AS (
    (FROM named EXCEPT FROM named_now) UNION (FROM named_now EXCEPT FROM named)
    UNION (FROM stated EXCEPT FROM stated_now) UNION (FROM stated_now EXCEPT FROM stated)
)
SELECT id FROM changed_rows WHERE table_name = 'text_units'
UNION FROM new_or_gone_units
UNION SELECT id FROM working.text_units WHERE document_id IN (FROM described_anew)
UNION SELECT unit FROM listed
UNION SELECT text_unit_id FROM covariates WHERE id IN (FROM touched_covariates)
UNION SELECT text_unit_id FROM claims WHERE id IN (FROM touched_covariates);

INSERT INTO touched_communities SELECT DISTINCT id FROM changed_rows WHERE table_name = 'communities';
INSERT INTO touched_community_reports SELECT DISTINCT id FROM changed_rows WHERE table_name = 'community_reports';
INSERT INTO touched_citations SELECT DISTINCT id FROM changed_rows WHERE table_name = 'citations';
INSERT INTO touched_community_members SELECT DISTINCT id FROM changed_rows WHERE table_name = 'community_members';
-- A vector is published with its row: it appears and vanishes with it.
INSERT INTO touched_embeddings
SELECT id FROM changed_rows WHERE table_name = 'embeddings'
UNION FROM new_or_gone_units
UNION SELECT id FROM new_or_gone_entities
UNION FROM touched_community_reports;

-- Texts that the inverted index may have to replace. The language of an entity's text is that of its text units.
CREATE TEMP TABLE touched_texts AS
SELECT 'text_unit' AS kind, human_readable_id AS number FROM working.numbers
WHERE table_name = 'text_units' AND id IN (FROM touched_text_units)
UNION SELECT 'text_unit', human_readable_id FROM text_units WHERE id IN (FROM touched_text_units)
UNION SELECT 'entity', human_readable_id FROM entities WHERE id IN (FROM touched_entities)
UNION SELECT 'entity', human_readable_id FROM working.entities WHERE id IN (FROM touched_entities)
UNION SELECT 'entity', e.entity FROM search.entity_text_units e JOIN text_units u ON u.human_readable_id = e.text_unit
WHERE u.document_id IN (FROM described_anew)
UNION SELECT 'community_report', human_readable_id FROM community_reports WHERE id IN (FROM touched_community_reports)
UNION SELECT 'community_report', human_readable_id FROM working.community_reports
WHERE id IN (FROM touched_community_reports);

-- Entities whose title is another one now.
CREATE TEMP TABLE retitled AS
SELECT new.human_readable_id AS entity FROM working.entities new JOIN entities old USING (id)
WHERE new.id IN (FROM touched_entities) AND new.title <> old.title;
