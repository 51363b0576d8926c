-- +goose Up

-- The events of a run have names in one style, and the interpretation of a question has one name. Stored logs and results are what clients
-- receive, so they are rewritten. Only the members of the object itself are renamed: a column of a result may be called "reading", too. The type
-- json keeps the order and the text of the other members.
-- +goose StatementBegin
CREATE FUNCTION with_interpretation(object text) RETURNS text
    LANGUAGE sql IMMUTABLE AS $$
SELECT '{' || string_agg(to_json(CASE key WHEN 'reading' THEN 'interpretation' ELSE key END)::text || ':' || value::text, ',' ORDER BY n) || '}'
FROM json_each(object::json) WITH ORDINALITY AS members (key, value, n)
$$;
-- +goose StatementEnd

UPDATE runs SET result = with_interpretation(result) WHERE result LIKE '%"reading":%';
UPDATE run_events SET body = with_interpretation(body) WHERE kind = 'plan' AND body LIKE '%"reading":%';
UPDATE run_events
SET kind = CASE kind WHEN 'run-started' THEN 'runStarted' WHEN 'run-completed' THEN 'runCompleted' WHEN 'run-cancelled' THEN 'runCancelled' ELSE 'runFailed' END
WHERE kind IN ('run-started', 'run-completed', 'run-cancelled', 'error');

DROP FUNCTION with_interpretation(text);

-- Earlier programs would write the old names again.
UPDATE schema_state SET compatible_from = 23;
