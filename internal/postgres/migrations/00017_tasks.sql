-- +goose Up

-- Runs as other agents list them: by agent and status, those first whose status changed last.
ALTER TABLE runs ADD COLUMN began_at timestamptz; -- when a worker wrote its first event
CREATE INDEX runs_tasks ON runs (account_id, agent, status, (coalesce(finished_at, began_at, created_at)) DESC, id DESC);
