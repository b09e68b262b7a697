-- A context for an answer, within a number of tokens.

-- Rows are taken in order; one that does not fit is skipped. The unused share of a section goes to the next. A report
-- that does not fit is tried with its summary. Shares of the budget: the
-- graph 35 %, then reports to 50 %, then sources to 100 %.
CREATE OR REPLACE MACRO local_context(titles, budget := 4000) AS TABLE
WITH _g_local_context AS MATERIALIZED (SELECT titles AS _g_titles, budget AS _g_budget),
given AS MATERIALIZED (
    SELECT unnest(g._g_titles) AS title, generate_subscripts(g._g_titles, 1) AS place FROM _g_local_context g
), chosen AS MATERIALIZED (
    SELECT c.entity, min(t.place) AS place FROM given t, own.entities_called(t.title) c GROUP BY c.entity
), touching AS (
    SELECT e.relationship, e.neighbor IN (SELECT c.entity FROM chosen c) AS inside, e.weight,
           count(*) OVER (PARTITION BY e.neighbor) AS links
    FROM own.edges e WHERE e.entity IN (SELECT c.entity FROM chosen c)
), ties AS MATERIALIZED (  -- those inside the selection first, then by how many of it the other end is linked with
    SELECT t.relationship, row_number() OVER (
               ORDER BY bool_or(t.inside) DESC, CASE WHEN bool_or(t.inside) THEN 0 ELSE max(t.links) END DESC,
                        max(t.weight) DESC, t.relationship) AS place
    FROM touching t GROUP BY t.relationship ORDER BY 2 LIMIT 200
), claims AS MATERIALIZED (
    SELECT v.human_readable_id FROM own.covariates v WHERE v.subject_number IN (SELECT c.entity FROM chosen c)
    UNION SELECT v.human_readable_id FROM own.covariates v WHERE v.object_number IN (SELECT c.entity FROM chosen c)
    ORDER BY 1 LIMIT 200
), groups AS MATERIALIZED (
    SELECT m.community, count(DISTINCT m.entity) AS matches FROM own.entity_communities m
    WHERE m.entity IN (SELECT c.entity FROM chosen c) GROUP BY m.community
), units AS MATERIALIZED (
    SELECT t.text_unit, min(c.place) AS place, arg_min(t.n_relationships, c.place) AS n_relationships
    FROM own.entity_text_units t JOIN chosen c ON c.entity = t.entity
    GROUP BY t.text_unit ORDER BY place, n_relationships DESC, t.text_unit LIMIT 100
), candidates AS (
    SELECT 1 AS part, 'Entities' AS section, c.place AS place, e.human_readable_id AS number,
           e.title || ' (' || e.type || '): ' || coalesce(e.description, '') AS says, NULL::BIGINT AS counted,
           false AS is_summary
    FROM chosen c JOIN own.entities e ON e.human_readable_id = c.entity
    WHERE e.human_readable_id IN (SELECT o.entity FROM chosen o)
    UNION ALL
    SELECT 2, 'Relationships', t.place, r.human_readable_id,
           r.source || ' – ' || r.target || coalesce(' (' || nullif(coalesce(nullif(r.relations, ''), r.type), '') || ')', '') || ': '
           || coalesce(r.description, ''), NULL, false
    FROM ties t JOIN own.relationships r ON r.human_readable_id = t.relationship
    WHERE r.human_readable_id IN (SELECT o.relationship FROM ties o)
    UNION ALL
    SELECT 3, 'Claims', row_number() OVER (ORDER BY v.start_date NULLS LAST, v.human_readable_id), v.human_readable_id,
           concat_ws(' ', v.start_date, v.subject_id) || ' (' || v.status || '): ' || coalesce(v.description, ''), NULL, false
    FROM own.covariates v WHERE v.human_readable_id IN (FROM claims)
    UNION ALL
    SELECT 4, 'Reports', dense_rank() OVER (ORDER BY g.matches DESC, r.rank DESC, r.level, r.human_readable_id),
           r.human_readable_id, unnest([r.full_content, '# ' || r.title || chr(10) || chr(10) || r.summary]),
           unnest([r.content_tokens, NULL]), unnest([false, true])
    FROM groups g JOIN own.community_reports r ON r.community = g.community
    WHERE r.community IN (SELECT o.community FROM groups o)
    UNION ALL
    SELECT 5, 'Sources', row_number() OVER (ORDER BY u.place, u.n_relationships DESC, u.text_unit),
           t.human_readable_id,
           concat_ws(chr(10), d.document_date, nullif(t.context, ''), t.text),
           t.n_tokens + coalesce(own.estimated_tokens(nullif(concat_ws(chr(10), d.document_date, nullif(t.context, '')), '')
                                                  || chr(10)), 0), false
    FROM units u JOIN own.text_units t ON t.human_readable_id = u.text_unit
    LEFT JOIN own.documents d ON d.id = t.document_id
    WHERE t.human_readable_id IN (SELECT o.text_unit FROM units o)
), lines AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY c.part, c.place, c.number, c.is_summary) AS place, c.section, c.number, c.is_summary,
           c.section || ' (' || c.number || '): ' || c.says || chr(10) AS text,
           -- a row's head and its line break are estimated on top of what is counted
           coalesce(c.counted + own.estimated_tokens(c.section || ' (' || c.number || '): ' || chr(10)),
                    own.estimated_tokens(c.section || ' (' || c.number || '): ' || c.says || chr(10))) AS tokens,
           coalesce((SELECT g._g_budget FROM _g_local_context g), 4000)
           * CASE WHEN c.part <= 3 THEN 0.35 WHEN c.part = 4 THEN 0.5 ELSE 1 END AS most
    FROM candidates c
), taken AS (
    SELECT list_reduce(
        list({'place': r.place, 'tokens': r.tokens, 'most': r.most::DOUBLE, 'is_summary': r.is_summary,
              'places': []::BIGINT[]} ORDER BY r.place),
        lambda sofar, next: CASE
            WHEN sofar.tokens + next.tokens > next.most THEN sofar
            WHEN next.is_summary AND sofar.place = next.place - 1 THEN sofar  -- the whole report is in
            ELSE {'place': next.place, 'tokens': sofar.tokens + next.tokens, 'most': next.most, 'is_summary': false,
                  'places': list_append(sofar.places, next.place)} END,
        {'place': 0::BIGINT, 'tokens': 0::BIGINT, 'most': 0::DOUBLE, 'is_summary': false, 'places': []::BIGINT[]}
    ).places AS places FROM lines r
)
SELECT r.section, r.number AS human_readable_id, r.text, r.tokens, sum(r.tokens) OVER (ORDER BY r.place)::BIGINT AS total
FROM lines r WHERE r.place IN (SELECT unnest(t.places) FROM taken t) ORDER BY r.place;
COMMENT ON MACRO TABLE local_context IS
    'Rows to answer from about the entities of a list of titles, within a budget of tokens: entities, relationships, claims, reports, sources. tokens: counted for reports and sources, else estimated (search.estimated_tokens).';
