-- Claims, those about the best connected entities first.
SELECT c.human_readable_id AS number, subject_number AS subject, subject_id AS subject_name, object_number AS object,
       object_id AS object_name, c.type, c.description, status, start_date, end_date, text_unit_number AS unit,
       source_text
FROM covariates c LEFT JOIN entities e ON e.human_readable_id = c.subject_number
ORDER BY coalesce(e.degree, -1) DESC, c.human_readable_id
LIMIT $claims
