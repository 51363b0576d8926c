-- +goose Up

-- Benchmarks of namespaces: their verified questions, asked again without the verified answers. caller is who started the benchmark; its questions
-- are asked with these rights. questions is NULL until the questions are listed.
CREATE TABLE benchmarks (
    account_id      uuid        NOT NULL,
    namespace_id    uuid        NOT NULL,
    id              uuid        NOT NULL,
    status          text        NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
    mode            text        NOT NULL CHECK (mode IN ('rules', 'model')),
    model           text        NOT NULL,
    provider        text        NOT NULL,
    release         text        NOT NULL,
    caller          jsonb       NOT NULL,
    author_id       uuid        NOT NULL,
    author          text        NOT NULL,
    conversation_id uuid,
    previous_id     uuid,
    questions       integer,
    answered_right  integer     NOT NULL DEFAULT 0,
    answered_wrong  integer     NOT NULL DEFAULT 0,
    refused         integer     NOT NULL DEFAULT 0,
    asked_back      integer     NOT NULL DEFAULT 0,
    failed          integer     NOT NULL DEFAULT 0,
    better          integer     NOT NULL DEFAULT 0,
    worse           integer     NOT NULL DEFAULT 0,
    error_code      text        NOT NULL DEFAULT '',
    error_message   text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    PRIMARY KEY (account_id, namespace_id, id)
);
-- One benchmark of a namespace runs at a time.
CREATE UNIQUE INDEX benchmarks_running ON benchmarks (account_id, namespace_id) WHERE status = 'running';
CREATE INDEX benchmarks_last ON benchmarks (account_id, namespace_id, mode, id) WHERE status = 'completed';

-- What became of each question. outcome is empty until it is known. data and meaning are hashes of the snapshots, and of the revisions of definitions and
-- semantics, of the datasets that the question needs. No values of cells are stored here; the rows of an answer are those of its run.
CREATE TABLE benchmark_results (
    account_id   uuid   NOT NULL,
    benchmark_id uuid   NOT NULL,
    question_id  uuid   NOT NULL,
    revision     bigint NOT NULL,
    question     text   NOT NULL,
    outcome      text   NOT NULL CHECK (outcome IN ('', 'right', 'wrong', 'refused', 'asked_back', 'failed')),
    detail       text   NOT NULL,
    run_id       uuid,
    row_count    bigint,
    expected     bigint,
    data         text   NOT NULL,
    meaning      text   NOT NULL,
    PRIMARY KEY (account_id, benchmark_id, question_id)
);

-- The datasets that the questions of a benchmark need. Who may not read all of them does not see the benchmark.
CREATE TABLE benchmark_datasets (
    account_id           uuid   NOT NULL,
    benchmark_id         uuid   NOT NULL,
    dataset_account      uuid   NOT NULL,
    dataset_namespace    uuid   NOT NULL,
    dataset_id           uuid   NOT NULL,
    definition_revision  bigint NOT NULL,
    semantics_revision   bigint NOT NULL,
    PRIMARY KEY (account_id, benchmark_id, dataset_account, dataset_id)
);
