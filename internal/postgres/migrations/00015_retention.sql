-- +goose Up

-- Runs that are kept for a while are removed oldest first.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
