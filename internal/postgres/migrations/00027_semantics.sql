-- +goose Up

-- Everything that people ever said about what a dataset means; the last revision is in force. Joins name other datasets by account and id, as
-- do measures, so that a rename changes nothing here.
CREATE TABLE semantics (
    account_id uuid        NOT NULL,
    dataset_id uuid        NOT NULL,
    revision   bigint      NOT NULL,
    content    jsonb       NOT NULL,
    actor_id   uuid        NOT NULL,
    actor      text        NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, revision)
);
