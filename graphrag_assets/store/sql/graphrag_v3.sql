-- The tables of Microsoft GraphRAG 3: its columns in its order and types. As it writes them, names are in capitals, and what
-- is unknown is NONE.

CREATE SCHEMA IF NOT EXISTS graphrag_v3;

CREATE OR REPLACE VIEW graphrag_v3.documents AS
SELECT id, human_readable_id, title, text, text_unit_ids, creation_date, raw_data::VARCHAR AS raw_data
FROM main.documents ORDER BY human_readable_id;

CREATE OR REPLACE VIEW graphrag_v3.text_units AS
SELECT id, human_readable_id, text, n_tokens, document_id, entity_ids, relationship_ids, covariate_ids
FROM main.text_units ORDER BY human_readable_id;

CREATE OR REPLACE VIEW graphrag_v3.entities AS
SELECT id, human_readable_id, upper(title) AS title, upper(type) AS type, description, text_unit_ids, frequency, degree
FROM main.entities ORDER BY human_readable_id;

CREATE OR REPLACE VIEW graphrag_v3.relationships AS
SELECT id, human_readable_id, upper(source) AS source, upper(target) AS target, description, weight, combined_degree,
       text_unit_ids
FROM main.relationships ORDER BY human_readable_id;

CREATE OR REPLACE VIEW graphrag_v3.communities AS
SELECT id, human_readable_id, community, level, parent, children, title, entity_ids, relationship_ids, text_unit_ids,
       period, size
FROM main.communities ORDER BY community;

CREATE OR REPLACE VIEW graphrag_v3.community_reports AS
SELECT id, human_readable_id, community, level, parent, children, title, summary, full_content, rank,
       rating_explanation,
       list_transform(findings, lambda f: {'explanation': f.explanation, 'summary': f.summary}) AS findings,
       full_content_json, period, size
FROM main.community_reports ORDER BY community;

-- Dates as GraphRAG asks its models for them.
CREATE OR REPLACE VIEW graphrag_v3.covariates AS
SELECT id, human_readable_id, covariate_type, coalesce(type, 'NONE') AS type, description,
       upper(subject_id) AS subject_id, coalesce(upper(object_id), 'NONE') AS object_id, status,
       coalesce(if(length(start_date) = 10, start_date || 'T00:00:00', start_date), 'NONE') AS start_date,
       coalesce(if(length(end_date) = 10, end_date || 'T00:00:00', end_date), 'NONE') AS end_date,
       coalesce(source_text, 'NONE') AS source_text, text_unit_id
FROM main.covariates ORDER BY human_readable_id;
