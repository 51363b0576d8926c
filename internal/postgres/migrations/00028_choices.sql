-- +goose Up

-- A run that asks which interpretation is meant waits for a choice. Until then deadline_at is the end of the wait.
ALTER TABLE runs
    DROP CONSTRAINT runs_status_check,
    ADD CONSTRAINT runs_status_check CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'cancelled', 'expired'));
CREATE INDEX runs_due ON runs (deadline_at) WHERE status IN ('running', 'waiting');
DROP INDEX runs_deadline;

-- quoted: before the choice the run only quoted values of the dataset. After it the run may read another snapshot.
ALTER TABLE run_reads ADD quoted boolean NOT NULL DEFAULT false;

-- An option has a number. Stored logs and results are what clients receive, so they are rewritten. The type json keeps the order and the text of the
-- other members.
-- +goose StatementBegin
CREATE FUNCTION with_numbers(object text) RETURNS text
    LANGUAGE sql IMMUTABLE AS $$
SELECT '{' || string_agg(to_json(key)::text || ':' || CASE key
    WHEN 'clarification' THEN '{"question":' || (value -> 'question')::text || ',"options":[' || coalesce((
        SELECT string_agg('{"number":' || number || ',"interpretation":' || option::text || '}', ',' ORDER BY number)
        FROM json_array_elements(value -> 'options') WITH ORDINALITY AS options (option, number)), '') || ']}'
    ELSE value::text END, ',' ORDER BY n) || '}'
FROM json_each(object::json) WITH ORDINALITY AS members (key, value, n)
$$;
-- +goose StatementEnd

UPDATE runs SET result = with_numbers(result) WHERE result LIKE '%"clarification":{%' AND result::json -> 'clarification' ->> 'question' IS NOT NULL;
UPDATE run_events SET body = with_numbers(body) WHERE kind = 'answer' AND body::json -> 'clarification' ->> 'question' IS NOT NULL;

DROP FUNCTION with_numbers(text);

-- Earlier programs would write options without numbers, and do not know runs that wait.
UPDATE schema_state SET compatible_from = 28;
