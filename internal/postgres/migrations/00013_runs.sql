-- +goose Up

-- Conversations and runs belong to the account of whoever asks, and nobody else sees them. A conversation is about
-- one namespace, which may be another's; username and namespace are its names when it began.
CREATE TABLE conversations (
    account_id        uuid        NOT NULL,
    id                uuid        NOT NULL,
    namespace_account uuid        NOT NULL,
    namespace_id      uuid        NOT NULL,
    username          text        NOT NULL,
    namespace         text        NOT NULL,
    title             text        NOT NULL,
    turns             int         NOT NULL,
    created_at        timestamptz NOT NULL,
    active_at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX conversations_active ON conversations (account_id, active_at DESC, id DESC);
CREATE INDEX conversations_namespace ON conversations (account_id, namespace_id, active_at DESC, id DESC);

-- caller is with which rights it was asked. last_seq is that of its last event: whoever writes one locks the row, so
-- numbers have no gaps and nothing comes after the end.
CREATE TABLE runs (
    account_id      uuid        NOT NULL,
    id              uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    agent           text        NOT NULL,
    status          text        NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'expired')),
    question        text        NOT NULL,
    request         jsonb       NOT NULL,
    caller          jsonb       NOT NULL,
    trace_id        bytea       NOT NULL,
    last_seq        bigint      NOT NULL,
    result          text, -- JSON whose members keep their order
    error_code      text        NOT NULL DEFAULT '',
    error_message   text        NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL,
    deadline_at     timestamptz NOT NULL,
    finished_at     timestamptz,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX runs_conversation ON runs (account_id, conversation_id, id);
CREATE INDEX runs_running ON runs (account_id) WHERE status = 'running';
CREATE INDEX runs_deadline ON runs (deadline_at) WHERE status = 'running';

-- Which datasets a run read: whoever may not see one of them any more sees nothing that came of it.
CREATE TABLE run_reads (
    account_id      uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    dataset_account uuid        NOT NULL,
    dataset_id      uuid        NOT NULL,
    dataset         text        NOT NULL,
    snapshot_id     uuid        NOT NULL,
    committed_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, run_id, dataset_id)
);
CREATE INDEX run_reads_dataset ON run_reads (dataset_account, dataset_id);

-- All rows of a step, if they are too many for the event. The row stands before its object.
CREATE TABLE run_objects (
    account_id uuid   NOT NULL,
    run_id     uuid   NOT NULL,
    step       int    NOT NULL,
    state      text   NOT NULL CHECK (state IN ('writing', 'kept', 'removing')),
    object_key text   NOT NULL UNIQUE,
    size       bigint NOT NULL DEFAULT 0,
    remove_at  timestamptz,
    PRIMARY KEY (account_id, run_id, step, object_key)
);
CREATE INDEX run_objects_removal ON run_objects (remove_at) WHERE remove_at IS NOT NULL;

-- The log. Ids of runs begin with their time, so a week's runs are one partition.
CREATE TABLE run_events (
    account_id uuid        NOT NULL,
    run_id     uuid        NOT NULL,
    seq        bigint      NOT NULL,
    kind       text        NOT NULL,
    step       int         NOT NULL,
    body       text        NOT NULL, -- JSON whose members keep their order
    at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, run_id, seq)
) PARTITION BY RANGE (run_id);
CREATE TABLE run_events_default PARTITION OF run_events DEFAULT;

-- The least id that a run of this moment can have.
CREATE FUNCTION run_id_at(moment timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$
SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- +goose StatementBegin
CREATE FUNCTION run_events_partition(week date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    monday date := date_trunc('week', week::timestamp)::date;
    since  uuid := run_id_at(monday::timestamp AT TIME ZONE 'UTC');
    until  uuid := run_id_at((monday + 7)::timestamp AT TIME ZONE 'UTC');
    name   text := 'run_events_' || to_char(monday, 'IYYY_IW');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('run_events_partition'));
    IF to_regclass(name) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE run_events_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE run_events INCLUDING ALL)', name);
    EXECUTE format('WITH late AS (DELETE FROM run_events_default WHERE run_id >= %1$L AND run_id < %2$L RETURNING *) INSERT INTO %3$I SELECT * FROM late',
        since, until, name);
    EXECUTE format('ALTER TABLE run_events ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, since, until);
END $$;
-- +goose StatementEnd

-- Events are kept for a while; a week's go together.
-- +goose StatementBegin
CREATE FUNCTION run_events_drop(before timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    old text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('run_events_partition'));
    FOR old IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'run_events'::regclass AND c.relname ~ '^run_events_[0-9]{4}_[0-9]{2}$'
          AND to_date(substr(c.relname, 12), 'IYYY_IW') + 7 <= (before AT TIME ZONE 'UTC')::date
    LOOP
        EXECUTE format('DROP TABLE %I', old);
    END LOOP;
    DELETE FROM run_events_default WHERE run_id < run_id_at(before);
END $$;
-- +goose StatementEnd
