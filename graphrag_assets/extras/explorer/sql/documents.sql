SELECT human_readable_id AS number, title, source, batch FROM documents ORDER BY batch, source, row_number, number
