SELECT e.title, e.type, e.degree,
       (SELECT list(n.title ORDER BY n.weight DESC, n.title) FROM g.neighbors(e.human_readable_id) n) AS neighbors
FROM {{ source('index', 'entities') }} e
ORDER BY e.degree DESC, e.title LIMIT 10
