-- +goose Up

-- Statements that a worker runs, whose results are kept in the store for a while. Only the account that started one sees
-- it. caller is with which rights it runs, and token_id the API token that was used. request is JSON as it was sent; it
-- has the values of parameters only until the statement ends. tables are the names in the statement and what they meant,
-- so that access can be checked again. attempt is that of the worker that writes, or has written, the pieces.
CREATE TABLE statements (
    account_id    uuid             NOT NULL,
    id            uuid             NOT NULL,
    token_id      uuid,
    status        text             NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    caller        jsonb            NOT NULL,
    request       text             NOT NULL,
    format        text             NOT NULL CHECK (format IN ('csv', 'csv-escaped', 'ndjson', 'parquet', 'arrow')),
    tables        jsonb            NOT NULL DEFAULT '[]',
    columns       jsonb            NOT NULL DEFAULT '[]',
    attempt       uuid,
    part          double precision NOT NULL DEFAULT 0,
    rows          bigint           NOT NULL DEFAULT 0,
    bytes         bigint           NOT NULL DEFAULT 0,
    error_code    text             NOT NULL DEFAULT '',
    error_message text             NOT NULL DEFAULT '',
    error_subs    jsonb            NOT NULL DEFAULT '[]',
    created_at    timestamptz      NOT NULL,
    began_at      timestamptz,
    finished_at   timestamptz,
    expires_at    timestamptz      NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX statements_token ON statements (account_id, token_id, id);
CREATE INDEX statements_open ON statements (account_id) WHERE status IN ('queued', 'running');
CREATE INDEX statements_expiry ON statements (expires_at);

-- Which snapshots a statement read.
CREATE TABLE statement_reads (
    account_id      uuid NOT NULL,
    statement_id    uuid NOT NULL,
    dataset_account uuid NOT NULL,
    dataset_id      uuid NOT NULL,
    dataset         text NOT NULL,
    snapshot_id     uuid NOT NULL,
    PRIMARY KEY (account_id, statement_id, dataset_id)
);
CREATE INDEX statement_reads_dataset ON statement_reads (dataset_account, dataset_id);

-- The objects of results. A row stands before its object and goes after it. The pieces have the numbers from 1; the last
-- number can be that of the end, which has no rows. head and tail are how many bytes at the start and at the end make
-- the piece a file of its own. A row with remove_at belongs to no statement any more.
CREATE TABLE statement_pieces (
    account_id   uuid    NOT NULL,
    statement_id uuid    NOT NULL,
    attempt      uuid    NOT NULL,
    number       int     NOT NULL,
    object_key   text    NOT NULL UNIQUE,
    is_end       boolean NOT NULL,
    rows         bigint  NOT NULL,
    bytes        bigint  NOT NULL,
    head         bigint  NOT NULL,
    tail         bigint  NOT NULL,
    sha256       bytea,
    remove_at    timestamptz,
    PRIMARY KEY (account_id, statement_id, attempt, number)
);
CREATE INDEX statement_pieces_removal ON statement_pieces (remove_at) WHERE remove_at IS NOT NULL;
