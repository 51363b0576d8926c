-- +goose Up

-- What askers think of runs, and thought before. In force is the last one that is recorded; thumbs_up is null if it is
-- a withdrawal. sent: it may stand in the tracing store. check_at: the store may have something else than what is in
-- force, and is to be looked at then. The trace is here too, because a run may be deleted before its rating is.
CREATE TABLE run_feedback (
    account_id uuid        NOT NULL,
    run_id     uuid        NOT NULL,
    revision   bigint      NOT NULL,
    trace_id   bytea       NOT NULL,
    state      text        NOT NULL CHECK (state IN ('sending', 'recorded', 'refused')),
    thumbs_up  boolean,
    comment    text        NOT NULL,
    sent       boolean     NOT NULL,
    check_at   timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, run_id, revision)
);
CREATE INDEX run_feedback_check ON run_feedback (check_at) WHERE check_at IS NOT NULL;
