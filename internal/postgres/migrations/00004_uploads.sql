-- +goose Up

CREATE TABLE upload_sessions (
    account_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    status     text        NOT NULL CHECK (status IN ('preparing', 'completed', 'aborted')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX upload_sessions_open ON upload_sessions (account_id) WHERE status = 'preparing';
CREATE INDEX upload_sessions_expiry ON upload_sessions (expires_at) WHERE status = 'preparing';

-- The object's key tells nothing of its owner. remove_at is when its bytes may go; removed_at when they went.
CREATE TABLE upload_files (
    account_id   uuid        NOT NULL,
    session_id   uuid        NOT NULL,
    id           uuid        NOT NULL,
    position     int         NOT NULL,
    filename     text        NOT NULL,
    size         bigint      NOT NULL,
    part_size    bigint      NOT NULL,
    object_key   text        NOT NULL UNIQUE,
    upload_id    text        NOT NULL,
    status       text        NOT NULL CHECK (status IN ('preparing', 'completed', 'aborted')),
    completed_at timestamptz,
    remove_at    timestamptz,
    removed_at   timestamptz,
    PRIMARY KEY (account_id, session_id, id)
);
CREATE INDEX upload_files_removal ON upload_files (remove_at) WHERE remove_at IS NOT NULL AND removed_at IS NULL;
