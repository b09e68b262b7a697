-- Nodes and edges of a property graph, of the rows selected by select.sql. Nodes begin with their id; edges with source
-- and target, which are ids, and type. `number` is the one in citations: Entities (5).

CREATE OR REPLACE TEMP VIEW graph_documents AS
SELECT d.id, d.human_readable_id AS number, d.title, d.source, d.batch, d.document_date, d.language, d.n_tokens
FROM documents d JOIN kept_documents k ON k.number = d.human_readable_id;

CREATE OR REPLACE TEMP VIEW graph_text_units AS
SELECT t.id, t.human_readable_id AS number, t.text, t.context, t.ordinal, t.start_char, t.end_char, t.n_tokens
FROM text_units t JOIN kept_units k ON k.number = t.human_readable_id;

CREATE OR REPLACE TEMP VIEW graph_entities AS
SELECT e.id, e.human_readable_id AS number, e.title, e.type, e.description, e.frequency, e.degree
FROM entities e JOIN kept_entities k ON k.number = e.human_readable_id;

CREATE OR REPLACE TEMP VIEW graph_claims AS
SELECT c.id, c.human_readable_id AS number, c.type, c.status, c.subject_id AS subject, c.object_id AS object,
       c.description, c.stated_on, c.valid_from, c.valid_until
FROM covariates c JOIN kept_covariates k ON k.number = c.human_readable_id;

CREATE OR REPLACE TEMP VIEW graph_communities AS
SELECT c.id, c.community AS number, c.level, c.title, c.size, c.period_date AS period
FROM communities c WHERE c.community IN (SELECT community FROM kept_members);

CREATE OR REPLACE TEMP VIEW graph_reports AS
SELECT r.id, r.human_readable_id AS number, r.title, r.summary, r.full_content, r.rank, r.model
FROM community_reports r WHERE r.community IN (SELECT community FROM kept_members);

CREATE OR REPLACE TEMP VIEW graph_relationships AS
SELECT r.source_id AS source, r.target_id AS target, coalesce(nullif(r.type, ''), 'RELATED') AS type, r.id,
       r.human_readable_id AS number, r.description, r.weight, r.relations, r.stated_on, r.valid_from, r.valid_until
FROM relationships r JOIN kept_relationships k ON k.number = r.human_readable_id;

CREATE OR REPLACE TEMP VIEW graph_unit_documents AS
SELECT t.id AS source, t.document_id AS target, 'PART_OF' AS type
FROM text_units t JOIN kept_units k ON k.number = t.human_readable_id SEMI JOIN graph_documents d ON d.id = t.document_id;

CREATE OR REPLACE TEMP VIEW graph_mentions AS
SELECT u.id AS source, e.id AS target, 'MENTIONS' AS type
FROM search.entity_text_units m JOIN graph_text_units u ON u.number = m.text_unit
JOIN graph_entities e ON e.number = m.entity;

CREATE OR REPLACE TEMP VIEW graph_claim_units AS
SELECT c.id AS source, c.text_unit_id AS target, 'STATED_IN' AS type
FROM covariates c JOIN kept_covariates k ON k.number = c.human_readable_id
SEMI JOIN graph_text_units u ON u.id = c.text_unit_id;

CREATE OR REPLACE TEMP VIEW graph_claim_entities AS
SELECT DISTINCT c.id AS source, e.id AS target, 'ABOUT' AS type
FROM covariates c JOIN kept_covariates k ON k.number = c.human_readable_id
JOIN graph_entities e ON e.number IN (c.subject_number, c.object_number);

CREATE OR REPLACE TEMP VIEW graph_members AS
SELECT e.id AS source, c.id AS target, 'IN_COMMUNITY' AS type
FROM kept_members m JOIN graph_entities e USING (number) JOIN communities c USING (community);

CREATE OR REPLACE TEMP VIEW graph_parents AS
SELECT c.id AS source, p.id AS target, 'PARENT' AS type
FROM communities c JOIN communities p ON p.community = c.parent
SEMI JOIN graph_communities k ON k.id = c.id SEMI JOIN graph_communities kp ON kp.id = p.id;

CREATE OR REPLACE TEMP VIEW graph_report_communities AS
SELECT r.id AS source, c.id AS target, 'REPORTS_ON' AS type
FROM community_reports r JOIN communities c USING (community) SEMI JOIN graph_reports k ON k.id = r.id;
