SELECT d.id AS document_id, d.title AS document, m.entity_number AS entity, e.title, count(*) AS mentions
FROM {{ source('index', 'entity_mentions') }} m
JOIN {{ source('index', 'documents') }} d ON d.id = m.document_id
JOIN {{ source('index', 'entities') }} e ON e.human_readable_id = m.entity_number
GROUP BY ALL
