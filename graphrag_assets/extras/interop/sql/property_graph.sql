-- Nodes and edges of a property graph. Nodes begin with their id; edges with source and target, which are ids, and
-- type. `number` is the one in citations: Entities (5).

CREATE OR REPLACE TEMP VIEW graph_documents AS
SELECT id, human_readable_id AS number, title, source, batch, document_date, language, n_tokens FROM documents;

CREATE OR REPLACE TEMP VIEW graph_text_units AS
SELECT id, human_readable_id AS number, text, context, ordinal, start_char, end_char, n_tokens FROM text_units;

CREATE OR REPLACE TEMP VIEW graph_entities AS
SELECT id, human_readable_id AS number, title, type, description, frequency, degree FROM entities;

CREATE OR REPLACE TEMP VIEW graph_claims AS
SELECT id, human_readable_id AS number, type, status, subject_id AS subject, object_id AS object, description,
       stated_on, valid_from, valid_until
FROM covariates;

CREATE OR REPLACE TEMP VIEW graph_communities AS
SELECT id, community AS number, level, title, size, period FROM communities;

CREATE OR REPLACE TEMP VIEW graph_reports AS
SELECT id, human_readable_id AS number, title, summary, full_content, rank, model FROM community_reports;

CREATE OR REPLACE TEMP VIEW graph_relationships AS
SELECT source_id AS source, target_id AS target, coalesce(nullif(type, ''), 'RELATED') AS type, id,
       human_readable_id AS number, description, weight, relations, stated_on, valid_from, valid_until
FROM relationships;

CREATE OR REPLACE TEMP VIEW graph_unit_documents AS
SELECT id AS source, document_id AS target, 'PART_OF' AS type FROM text_units;

CREATE OR REPLACE TEMP VIEW graph_mentions AS
SELECT id AS source, unnest(entity_ids) AS target, 'MENTIONS' AS type FROM text_units;

CREATE OR REPLACE TEMP VIEW graph_claim_units AS
SELECT id AS source, text_unit_id AS target, 'STATED_IN' AS type FROM covariates;

CREATE OR REPLACE TEMP VIEW graph_claim_entities AS
SELECT DISTINCT c.id AS source, e.id AS target, 'ABOUT' AS type
FROM covariates c JOIN entities e ON e.human_readable_id IN (c.subject_number, c.object_number);

CREATE OR REPLACE TEMP VIEW graph_members AS
SELECT unnest(entity_ids) AS source, id AS target, 'IN_COMMUNITY' AS type FROM communities;

CREATE OR REPLACE TEMP VIEW graph_parents AS
SELECT c.id AS source, p.id AS target, 'PARENT' AS type FROM communities c JOIN communities p ON p.community = c.parent;

CREATE OR REPLACE TEMP VIEW graph_report_communities AS
SELECT r.id AS source, c.id AS target, 'REPORTS_ON' AS type FROM community_reports r JOIN communities c USING (community);
