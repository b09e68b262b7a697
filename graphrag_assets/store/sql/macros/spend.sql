-- Costs of model calls, from the ledger's entries.

CREATE OR REPLACE MACRO spend_by(what) AS TABLE
WITH _g_spend_by AS MATERIALIZED (SELECT what AS _g_what),
asked AS (
    SELECT CASE WHEN lower(g._g_what) IN ('task', 'model', 'day', 'batch', 'run') THEN lower(g._g_what)
                ELSE error('spend_by: ' || coalesce(g._g_what, 'NULL') || ' is none of task, model, day, batch, run.')
           END AS what_for
    FROM _g_spend_by g
), calls AS (
    SELECT CASE a.what_for WHEN 'task' THEN l.task WHEN 'model' THEN l.provider || '/' || l.model
                           WHEN 'day' THEN l.created_at::DATE::VARCHAR WHEN 'batch' THEN l.batch ELSE l.run_id
           END AS spent_on, a.what_for, l.prompt_tokens, l.cached_tokens, l.completion_tokens, l.cost_usd, l.seconds
    FROM asked a LEFT JOIN own.llm_calls l ON true
    WHERE l.key IS NOT NULL
)
SELECT c.spent_on, count(*) AS calls, sum(c.prompt_tokens)::BIGINT AS prompt_tokens,
       sum(c.cached_tokens)::BIGINT AS cached_tokens, sum(c.completion_tokens)::BIGINT AS completion_tokens,
       sum(c.cost_usd) AS cost_usd, sum(c.seconds) AS seconds
FROM calls c GROUP BY c.spent_on, c.what_for
ORDER BY CASE WHEN c.what_for = 'day' THEN c.spent_on END, sum(c.cost_usd) DESC NULLS LAST, c.spent_on;
COMMENT ON MACRO TABLE spend_by IS
    'Model calls, tokens, US dollars and seconds by task, model, day, batch or run; the most expensive first, days in order.';
