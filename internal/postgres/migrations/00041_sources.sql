-- +goose Up

-- Sources load the files of a connection into a dataset. dataset_id is the dataset of the first load: another dataset with the same name is not meant.
CREATE TABLE sources (
    account_id    uuid        NOT NULL,
    id            uuid        NOT NULL,
    token_id      uuid        NOT NULL, -- of the API token that acts; zero for a person who signed in
    name          text        NOT NULL,
    connection_id uuid        NOT NULL, -- may be deleted: then runs fail
    username      text        NOT NULL, -- owner of the dataset
    namespace     text        NOT NULL,
    dataset       text        NOT NULL,
    dataset_id    uuid,
    prefix        text        NOT NULL,
    pattern       text        NOT NULL,
    options       jsonb       NOT NULL,
    accept        text[]      NOT NULL,
    status        text        NOT NULL,
    reason        text        NOT NULL, -- why it is stopped
    ingestion_id  uuid,                 -- that stopped it
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX sources_name ON sources (account_id, lower(name));

-- Files that a source has claimed. claimed: its content may be received into an upload session. loading: it has its ingestion, which is never replaced by another one.
CREATE TABLE source_files (
    account_id   uuid        NOT NULL,
    source_id    uuid        NOT NULL,
    path         text        COLLATE "C" NOT NULL, -- below the prefix of the connection
    etag         text        NOT NULL, -- of the content that is loaded
    seen         text        NOT NULL, -- the ETag that was told last; empty if the file is gone
    size         bigint      NOT NULL,
    state        text        NOT NULL,
    session_id   uuid,
    owner_id     uuid,                 -- account of the dataset
    dataset_id   uuid,
    ingestion_id uuid,
    PRIMARY KEY (account_id, source_id, path)
);

CREATE TABLE source_runs (
    account_id   uuid        NOT NULL,
    source_id    uuid        NOT NULL,
    id           uuid        NOT NULL,
    status       text        NOT NULL,
    files        bigint      NOT NULL DEFAULT 0,
    rows         bigint      NOT NULL DEFAULT 0,
    bytes        bigint      NOT NULL DEFAULT 0,
    changed      bigint      NOT NULL DEFAULT 0,
    deleted      bigint      NOT NULL DEFAULT 0,
    notes        jsonb       NOT NULL DEFAULT '[]',
    reason       text        NOT NULL DEFAULT '',
    ingestion_id uuid,
    created_at   timestamptz NOT NULL,
    started_at   timestamptz,
    finished_at  timestamptz,
    PRIMARY KEY (account_id, source_id, id)
);
-- One run at a time.
CREATE UNIQUE INDEX source_runs_open ON source_runs (account_id, source_id) WHERE finished_at IS NULL;
