-- +goose Up

-- cron is empty for a source without a schedule. slot_at is the slot that comes next, and next_at when it runs: the slot plus the shift of the source. Both are null unless
-- the source is active and has a schedule. reason_code is why it is stopped, for programs.
ALTER TABLE sources
    ADD cron           text        NOT NULL DEFAULT '',
    ADD time_zone      text        NOT NULL DEFAULT '',
    ADD jitter_minutes integer     NOT NULL DEFAULT 0,
    ADD slot_at        timestamptz,
    ADD next_at        timestamptz,
    ADD reason_code    text        NOT NULL DEFAULT '';
CREATE INDEX sources_due ON sources (next_at) WHERE next_at IS NOT NULL;

-- A slot has at most one run. slot_at is null for a run that somebody asked for.
ALTER TABLE source_runs ADD slot_at timestamptz;
CREATE UNIQUE INDEX source_runs_slot ON source_runs (account_id, source_id, slot_at);

-- When a source last had nothing for the dataset that the dataset did not get.
ALTER TABLE datasets ADD refreshed_at timestamptz;

-- A reason no longer quotes the message of an ingestion: its reader may have lost the right on the dataset.
UPDATE sources SET reason = regexp_replace(reason, '" could not be loaded: .* Retry the ingestion', '" could not be loaded. Retry the ingestion, which says why') WHERE reason LIKE '%" could not be loaded: %';
UPDATE source_runs SET reason = regexp_replace(reason, '" could not be loaded: .* Retry the ingestion', '" could not be loaded. Retry the ingestion, which says why') WHERE reason LIKE '%" could not be loaded: %';
