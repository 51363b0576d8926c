-- +goose Up

-- What happened, as it is written in the transaction in which it happened. It has no number yet: transactions commit in another order than they
-- take numbers from a sequence, and a reader that has seen a higher number would miss a lower one that commits later.
CREATE TABLE new_events (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id      uuid        NOT NULL, -- in whose log it belongs
    event_id        uuid        NOT NULL,
    type            text        NOT NULL,
    kind            text        NOT NULL, -- of the thing that it happened to
    subject_account uuid        NOT NULL,
    subject_id      uuid        NOT NULL,
    namespace_id    uuid        NOT NULL, -- nil if none
    token_id        uuid        NOT NULL, -- nil if none
    data            text        NOT NULL, -- JSON
    at              timestamptz NOT NULL
);

-- The same with its number. Numbers are given after the commit, by whoever holds the row of event_head, so a number is visible only when all
-- lower ones are. A number is a time in microseconds, raised if needed, so a week's events are one partition.
CREATE TABLE events (
    account_id      uuid        NOT NULL,
    seq             bigint      NOT NULL,
    event_id        uuid        NOT NULL,
    type            text        NOT NULL,
    kind            text        NOT NULL,
    subject_account uuid        NOT NULL,
    subject_id      uuid        NOT NULL,
    namespace_id    uuid        NOT NULL,
    token_id        uuid        NOT NULL,
    data            text        NOT NULL,
    at              timestamptz NOT NULL,
    PRIMARY KEY (account_id, seq)
) PARTITION BY RANGE (seq);
CREATE INDEX ON events (account_id, subject_id) WHERE kind = 'run'; -- for runs that are deleted
CREATE TABLE events_default PARTITION OF events DEFAULT;

-- The highest number.
CREATE TABLE event_head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq bigint  NOT NULL
);
INSERT INTO event_head (seq) VALUES ((extract(epoch FROM now()) * 1000000)::bigint);

-- +goose StatementBegin
CREATE FUNCTION events_partition(week date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    monday date   := date_trunc('week', week::timestamp)::date;
    since  bigint := extract(epoch FROM monday::timestamp AT TIME ZONE 'UTC') * 1000000;
    until  bigint := extract(epoch FROM (monday + 7)::timestamp AT TIME ZONE 'UTC') * 1000000;
    name   text   := 'events_' || to_char(monday, 'IYYY_IW');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('events_partition'));
    IF to_regclass(name) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE events_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE events INCLUDING ALL)', name);
    EXECUTE format('WITH late AS (DELETE FROM events_default WHERE seq >= %1$L AND seq < %2$L RETURNING *) INSERT INTO %3$I SELECT * FROM late',
        since, until, name);
    EXECUTE format('ALTER TABLE events ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, since, until);
END $$;
-- +goose StatementEnd

-- Events are kept for a while; a week's go together.
-- +goose StatementBegin
CREATE FUNCTION events_drop(before timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    old text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('events_partition'));
    FOR old IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'events'::regclass AND c.relname ~ '^events_[0-9]{4}_[0-9]{2}$'
          AND to_date(substr(c.relname, 8), 'IYYY_IW') + 7 <= (before AT TIME ZONE 'UTC')::date
    LOOP
        EXECUTE format('DROP TABLE %I', old);
    END LOOP;
    DELETE FROM events_default WHERE seq < extract(epoch FROM before) * 1000000;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    function text;
BEGIN
    FOREACH function IN ARRAY ARRAY['events_partition(date)', 'events_drop(timestamptz)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', function, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd

SELECT events_partition(current_date);
SELECT events_partition(current_date + 7);
