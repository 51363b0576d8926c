-- +goose Up

-- The snapshot that columns and row_count are of.
ALTER TABLE datasets ADD snapshot_id uuid;

-- A file that is loaded belongs to the dataset and is kept for it. reserved_until is set while nobody knows yet
-- whether the ingestion came about.
ALTER TABLE upload_files
    ADD bound_account   uuid,
    ADD bound_dataset   uuid,
    ADD bound_ingestion uuid,
    ADD reserved_until  timestamptz;
CREATE INDEX upload_files_bound ON upload_files (bound_account, bound_dataset) WHERE bound_dataset IS NOT NULL;
CREATE INDEX upload_files_reserved ON upload_files (reserved_until) WHERE reserved_until IS NOT NULL;

-- One row for each request to add rows, of files or of a body. It lives in the dataset's account; the caller may
-- be another one. epoch is the dataset's when it was accepted. ready_at is when everything is staged: from then on
-- whoever commits next takes it along.
CREATE TABLE ingestions (
    account_id     uuid        NOT NULL,
    dataset_id     uuid        NOT NULL,
    id             uuid        NOT NULL,
    kind           text        NOT NULL CHECK (kind IN ('files', 'rows')),
    caller_id      uuid        NOT NULL,
    session_id     uuid,
    status         text        NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    mode           text        NOT NULL CHECK (mode IN ('append', 'replace')),
    dry_run        boolean     NOT NULL,
    epoch          bigint      NOT NULL,
    options        jsonb       NOT NULL,
    phase          text        NOT NULL,
    bytes_done     bigint      NOT NULL DEFAULT 0,
    bytes_total    bigint      NOT NULL,
    rows_done      bigint      NOT NULL DEFAULT 0,
    rows_set_aside bigint      NOT NULL DEFAULT 0,
    warnings       text[]      NOT NULL DEFAULT '{}',
    preview        jsonb,
    error_code     text        NOT NULL DEFAULT '',
    error_message  text        NOT NULL DEFAULT '',
    snapshot_id    uuid,
    audit          jsonb, -- of posted rows: the entry for the moment in which they are there
    created_at     timestamptz NOT NULL,
    started_at     timestamptz,
    ready_at       timestamptz,
    finished_at    timestamptz,
    PRIMARY KEY (account_id, dataset_id, id)
);
CREATE INDEX ingestions_listed ON ingestions (account_id, dataset_id, id DESC) WHERE kind = 'files';
CREATE INDEX ingestions_ready ON ingestions (account_id, dataset_id, ready_at) WHERE status = 'running' AND ready_at IS NOT NULL;
CREATE INDEX ingestions_posted ON ingestions (created_at) WHERE kind = 'rows' AND status = 'running';

-- The files of an ingestion, with all that is needed to read them again.
CREATE TABLE ingestion_files (
    account_id   uuid   NOT NULL,
    dataset_id   uuid   NOT NULL,
    ingestion_id uuid   NOT NULL,
    position     int    NOT NULL,
    file_id      uuid   NOT NULL,
    filename     text   NOT NULL,
    size         bigint NOT NULL,
    object_key   text   NOT NULL,
    PRIMARY KEY (account_id, dataset_id, ingestion_id, position)
);
CREATE INDEX ingestion_files_file ON ingestion_files (account_id, dataset_id, file_id);

-- Rows that did not fit, by their number in the file.
CREATE TABLE set_aside_rows (
    account_id   uuid   NOT NULL,
    dataset_id   uuid   NOT NULL,
    ingestion_id uuid   NOT NULL,
    position     int    NOT NULL,
    row_number   bigint NOT NULL,
    reason       text   NOT NULL,
    PRIMARY KEY (account_id, dataset_id, ingestion_id, position, row_number)
);
