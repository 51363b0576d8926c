-- +goose Up

-- Every attempt at asking a model, written before it is made. sending: nobody knows yet; unknown: nobody will, and it may
-- have been billed. After expires_at nobody sends any more. error is one word; texts are nowhere here.
CREATE TABLE model_calls (
    account_id       uuid        NOT NULL,
    run_id           uuid        NOT NULL,
    id               uuid        NOT NULL,
    purpose          text        NOT NULL,
    provider         text        NOT NULL,
    model            text        NOT NULL,
    turn             integer     NOT NULL,
    attempt          integer     NOT NULL,
    request_hash     bytea       NOT NULL,
    state            text        NOT NULL CHECK (state IN ('sending', 'done', 'failed', 'unknown')),
    input_tokens     bigint      NOT NULL DEFAULT 0,
    output_tokens    bigint      NOT NULL DEFAULT 0,
    cached_tokens    bigint      NOT NULL DEFAULT 0,
    reasoning_tokens bigint      NOT NULL DEFAULT 0,
    finish           text        NOT NULL DEFAULT '',
    error            text        NOT NULL DEFAULT '',
    response_id      text        NOT NULL DEFAULT '',
    started_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz,
    PRIMARY KEY (account_id, run_id, id)
);
CREATE INDEX model_calls_sending ON model_calls (expires_at) WHERE state = 'sending';
