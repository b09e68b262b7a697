-- All text units; their texts up to $characters: the best text unit of each entity first, then the second best, so that
-- every entity can be read about.
WITH places AS (
    SELECT text_unit, row_number() OVER (PARTITION BY entity ORDER BY n_relationships DESC, text_unit) AS place
    FROM search.entity_text_units
), best AS (
    SELECT text_unit, min(place) AS place FROM places GROUP BY ALL
), summed AS (
    SELECT human_readable_id AS number,
           sum(length(text)) OVER (ORDER BY place NULLS LAST, human_readable_id ROWS UNBOUNDED PRECEDING) AS characters
    FROM text_units LEFT JOIN best ON text_unit = human_readable_id
)
SELECT t.human_readable_id AS number, d.human_readable_id AS document, t.start_char AS start, t.end_char AS end,
       nullif(concat_ws(', ', if(d.format IN ('pptx', 'odp'), 'slide ', 'page ') || t.page, 'sheet ' || t.sheet, t.time,
              'row ' || d.row_number, array_to_string(t.headings, ' › ')), '') AS place,
       CASE WHEN s.characters <= $characters THEN t.text END AS text
FROM text_units t
JOIN summed s ON s.number = t.human_readable_id
LEFT JOIN documents d ON d.id = t.document_id
ORDER BY document, t.ordinal, number
