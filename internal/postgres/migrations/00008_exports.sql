-- +goose Up

-- Datasets as files in the store, one for each snapshot and format, whoever asked for it. A file is given until
-- expires_at, and its object goes a while later; nothing else refers to it. The object's key tells nothing of its
-- owner. A row that is dropped only remembers an object that is to go.
CREATE TABLE exports (
    account_id    uuid        NOT NULL,
    dataset_id    uuid        NOT NULL,
    snapshot_id   uuid        NOT NULL,
    format        text        NOT NULL CHECK (format IN ('csv', 'ndjson', 'parquet')),
    id            uuid        NOT NULL,
    object_key    text        NOT NULL UNIQUE,
    state         text        NOT NULL CHECK (state IN ('queued', 'running', 'ready', 'failed', 'dropped')),
    size          bigint, -- when it is whole
    error_code    text        NOT NULL DEFAULT '',
    error_message text        NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, id)
);
CREATE UNIQUE INDEX exports_live ON exports (account_id, dataset_id, snapshot_id, format) WHERE state <> 'dropped';
CREATE INDEX exports_expiry ON exports (expires_at);
