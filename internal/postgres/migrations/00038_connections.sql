-- +goose Up

-- Other systems from which data is fetched. settings has no secret. sealed has the secrets, encrypted with a key of their own; wrapped is that key, encrypted
-- with the key of the operator that key_id names. Another key of the operator changes only wrapped and key_id.
CREATE TABLE connections (
    account_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    kind       text        NOT NULL, -- open: later releases add kinds
    settings   jsonb       NOT NULL,
    key_id     text        NOT NULL,
    wrapped    bytea       NOT NULL,
    sealed     bytea       NOT NULL,
    problem    text        NOT NULL, -- of the last test; empty if it worked
    tested_at  timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX connections_name ON connections (account_id, lower(name));
