-- +goose Up
-- The schemas that statements on Trino read: each exists while one statement runs. The token is known to that statement alone; only its
-- hash is stored. A row has the tables of the statement with their snapshots, and nothing else is visible under the token.
CREATE TABLE engine_schemas (
    account_id uuid        NOT NULL,
    token_hash bytea       NOT NULL,
    tables     jsonb       NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, token_hash)
);

CREATE INDEX engine_schemas_expires ON engine_schemas (expires_at);
