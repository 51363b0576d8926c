-- +goose Up

-- Where to send events. holder is the API token that made it, or nil: a webhook acts with the rights that its maker has now. A secret is derived from
-- the secret of the service, the id and the version; secret_check is its hash, so that another secret of the service is noticed.
CREATE TABLE webhooks (
    account_id     uuid        NOT NULL,
    id             uuid        NOT NULL,
    token_id       uuid        NOT NULL,
    url            text        NOT NULL,
    types          text[]      NOT NULL, -- empty: all
    scope_account  uuid        NOT NULL, -- nil: everything in the logs of the account
    scope_space    uuid        NOT NULL,
    scope_dataset  uuid        NOT NULL, -- nil: all datasets of the namespace
    status         text        NOT NULL CHECK (status IN ('active', 'paused', 'disabled')),
    reason         text        NOT NULL,
    secret_version int         NOT NULL,
    secret_check   bytea       NOT NULL,
    old_until      timestamptz,          -- until then the secret before signs too
    failing_since  timestamptz,
    created_at     timestamptz NOT NULL,
    run_id         uuid        NOT NULL, -- nil, except for push notifications of a task of A2A: the run
    push_id        text        NOT NULL, -- the id that the client gave to the push notifications
    sealed         bytea       NOT NULL, -- their token and credentials, encrypted
    PRIMARY KEY (account_id, id)
);
CREATE INDEX webhooks_run ON webhooks (account_id, run_id, push_id) WHERE run_id <> '00000000-0000-0000-0000-000000000000';
CREATE INDEX webhooks_run_age ON webhooks (created_at) WHERE run_id <> '00000000-0000-0000-0000-000000000000';

-- The inverse: which webhooks get the events of a log.
CREATE TABLE directory_webhooks (
    log_id     uuid NOT NULL, -- an account or an inbox; for push notifications the run
    account_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    PRIMARY KEY (log_id, account_id, webhook_id)
);
CREATE INDEX directory_webhooks_webhook ON directory_webhooks (account_id, webhook_id);

-- Each event for a webhook, and how its delivery went. The answers of receivers are not kept.
CREATE TABLE webhook_deliveries (
    account_id uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    seq        bigint      NOT NULL,
    log_id     uuid        NOT NULL,
    subject_id uuid        NOT NULL,
    event_id   uuid        NOT NULL,
    type       text        NOT NULL,
    state      text        NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    attempts   int         NOT NULL DEFAULT 0,
    status     int         NOT NULL DEFAULT 0,
    problem    text        NOT NULL DEFAULT '',
    latency_ms int         NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    tried_at   timestamptz,
    PRIMARY KEY (account_id, webhook_id, seq)
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (account_id, webhook_id, subject_id, seq) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);

-- What waits of one thing for one webhook, in order. claim is the sender that works on it, until next_at; afterwards anybody may. version rises with each
-- delivery that is added, so that a lane is not removed with one that its sender has not seen.
CREATE TABLE webhook_lanes (
    account_id uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    subject_id uuid        NOT NULL,
    next_at    timestamptz NOT NULL,
    claim      uuid,
    version    bigint      NOT NULL,
    PRIMARY KEY (account_id, webhook_id, subject_id)
);
CREATE INDEX webhook_lanes_due ON webhook_lanes (next_at);
