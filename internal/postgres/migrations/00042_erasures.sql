-- +goose Up
-- Requests of operators to erase something at once, with what was found when the erasure began. A row stays as the receipt; it has names, ids and figures,
-- and no value of a cell. dataset_id is nil for a user. erased_at is when the last object was removed: replicas drop copies that are older.
CREATE TABLE erasures (
    account_id   uuid        NOT NULL,
    id           uuid        NOT NULL,
    kind         text        NOT NULL CHECK (kind IN ('dataset', 'user', 'history')),
    dataset_id   uuid        NOT NULL,
    target       text        NOT NULL, -- as the operator named it; a pseudonym after a user was erased
    state        text        NOT NULL CHECK (state IN ('running', 'erased', 'done')),
    found        jsonb       NOT NULL,
    out_of_reach text[]      NOT NULL DEFAULT '{}',
    requested_at timestamptz NOT NULL,
    erased_at    timestamptz,
    finished_at  timestamptz,
    PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX erasures_open ON erasures (account_id, kind, dataset_id) WHERE state <> 'done';
CREATE INDEX erasures_erased ON erasures (erased_at) WHERE erased_at IS NOT NULL;
CREATE INDEX erasures_target ON erasures (kind, target);
