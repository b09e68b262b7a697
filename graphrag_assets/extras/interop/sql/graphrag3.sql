-- The tables of GraphRAG 3 from a publication, by its conventions: titles in capitals, NONE for what is unknown.

-- Dates as GraphRAG asks its models for them.
CREATE OR REPLACE TEMP MACRO stated_date(d) AS
CASE WHEN d IS NULL THEN 'NONE' WHEN length(d) = 10 THEN d || 'T00:00:00' ELSE d END;

CREATE OR REPLACE TEMP VIEW v3_documents AS
SELECT id, human_readable_id, title, text, text_unit_ids, creation_date, raw_data::VARCHAR AS raw_data
FROM documents ORDER BY human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_text_units AS
SELECT id, human_readable_id, text, n_tokens, document_id, entity_ids, relationship_ids, covariate_ids
FROM text_units ORDER BY human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_entities AS
SELECT id, human_readable_id, upper(title) AS title, type, description, text_unit_ids, frequency, degree
FROM entities ORDER BY human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_relationships AS
SELECT id, human_readable_id, upper(source) AS source, upper(target) AS target, description, weight, combined_degree,
       text_unit_ids
FROM relationships ORDER BY human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_covariates AS
SELECT id, human_readable_id, covariate_type, coalesce(type, 'NONE') AS type, description,
       upper(subject_id) AS subject_id, coalesce(upper(object_id), 'NONE') AS object_id, status,
       stated_date(start_date) AS start_date, stated_date(end_date) AS end_date,
       coalesce(source_text, 'NONE') AS source_text, text_unit_id
FROM covariates ORDER BY human_readable_id;

CREATE OR REPLACE TEMP VIEW v3_communities AS
SELECT id, human_readable_id, community, level, parent, children, title, entity_ids, relationship_ids, text_unit_ids,
       period, size
FROM communities ORDER BY community;

CREATE OR REPLACE TEMP VIEW v3_community_reports AS
SELECT id, human_readable_id, community, level, parent, children, title, summary, full_content, rank,
       rating_explanation, list_transform(findings, lambda f: {'explanation': f.explanation, 'summary': f.summary})
       AS findings, full_content_json, period, size
FROM community_reports ORDER BY community;
