-- +goose Up

-- The last snapshot that took rows away. What was made of an earlier one may show values that are gone.
ALTER TABLE lake_tables ADD replaced_sequence bigint NOT NULL DEFAULT 0;

-- What the values of a dataset look like: the profile and the index of values are objects beside the table. summary
-- is what other datasets' columns are compared with.
CREATE TABLE lake_profiles (
    account_id  uuid        NOT NULL,
    dataset_id  uuid        NOT NULL,
    snapshot_id uuid        NOT NULL,
    sequence    bigint      NOT NULL, -- of the snapshot
    row_count   bigint      NOT NULL,
    computed_at timestamptz NOT NULL,
    profile_key text        NOT NULL,
    profile_size bigint     NOT NULL,
    values_key  text        NOT NULL DEFAULT '', -- if there is one
    values_size bigint      NOT NULL DEFAULT 0,
    summary     jsonb       NOT NULL,
    PRIMARY KEY (account_id, dataset_id)
);

-- Columns of two datasets of a namespace that probably have the same values, once for each of the two.
CREATE TABLE lake_joins (
    account_id   uuid NOT NULL,
    dataset_id   uuid NOT NULL,
    column_name  text NOT NULL,
    other_id     uuid NOT NULL,
    other_column text NOT NULL,
    share        real NOT NULL, -- of the values of the one that the other has too
    PRIMARY KEY (account_id, dataset_id, other_id, column_name, other_column)
);
CREATE INDEX lake_joins_other ON lake_joins (account_id, other_id);
