-- The entities of the subject and object of each row of `claims`: by an alias of the document, else by an alias for all
-- documents, else by the name.
WITH names AS (
    SELECT document_id, subject_key AS key FROM claims UNION SELECT document_id, object_key FROM claims
), resolved AS (
    SELECT n.document_id, n.key, e.id AS entity_id
    FROM names n
    LEFT JOIN entity_aliases here ON here.document_id = n.document_id AND here.alias_key = n.key
    LEFT JOIN entity_aliases everywhere ON everywhere.document_id IS NULL AND everywhere.alias_key = n.key
    JOIN entities e ON e.title_key = coalesce(here.title_key, everywhere.title_key, n.key)
)
SELECT c.id, s.entity_id AS subject_entity_id, o.entity_id AS object_entity_id
FROM claims c
LEFT JOIN resolved s ON s.document_id = c.document_id AND s.key = c.subject_key
LEFT JOIN resolved o ON o.document_id = c.document_id AND o.key = c.object_key
