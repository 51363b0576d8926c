-- +goose Up

-- A dataset that an ingestion names before it exists. The dataset is created under this id together with its first
-- snapshot, and the row goes away. entry is the audit entry of whoever named it first.
CREATE TABLE dataset_drafts (
    account_id    uuid        NOT NULL,
    namespace_key text        NOT NULL,
    name_key      text        NOT NULL,
    id            uuid        NOT NULL,
    namespace     text        NOT NULL,
    name          text        NOT NULL,
    entry         jsonb       NOT NULL,
    created_at    timestamptz NOT NULL,
    used_at       timestamptz NOT NULL,
    PRIMARY KEY (account_id, namespace_key, name_key)
);
CREATE UNIQUE INDEX dataset_drafts_id ON dataset_drafts (account_id, id);
CREATE INDEX dataset_drafts_used ON dataset_drafts (used_at);

-- An ingestion waits until each of its doubts that has a code is accepted.
ALTER TABLE ingestions
    DROP CONSTRAINT ingestions_status_check,
    ADD CONSTRAINT ingestions_status_check CHECK (status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    ADD doubts   jsonb  NOT NULL DEFAULT '[]',
    ADD accepted text[] NOT NULL DEFAULT '{}';

-- What a file had in it when it was loaded: the SHA-256 of its bytes, and the smallest hashes of its rows, eight bytes
-- each. Both are null again when its rows are no longer in the dataset.
ALTER TABLE ingestion_files
    ADD digest bytea,
    ADD sketch bytea;
CREATE INDEX ingestion_files_digest ON ingestion_files (account_id, dataset_id, digest) WHERE digest IS NOT NULL;
