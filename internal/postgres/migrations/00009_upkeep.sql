-- +goose Up

-- What is to be done for a table besides its commits. A commit puts the row in; whoever has done it for the latest
-- snapshot takes it out. since is the first commit that nobody looked at yet.
CREATE TABLE lake_upkeep (
    account_id  uuid        NOT NULL,
    dataset_id  uuid        NOT NULL,
    chore       text        NOT NULL CHECK (chore IN ('profile', 'compact')),
    snapshot_id uuid        NOT NULL,
    since       timestamptz NOT NULL,
    due_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, chore)
);
CREATE INDEX lake_upkeep_due ON lake_upkeep (chore, due_at);

-- How many rows a table had when its profile was made.
ALTER TABLE lake_tables ADD profiled_rows bigint;

-- Objects that are made of a table's rows stand beside it.
ALTER TABLE lake_files
    DROP CONSTRAINT lake_files_kind_check,
    ADD CONSTRAINT lake_files_kind_check CHECK (kind IN ('data', 'metadata', 'derived'));
