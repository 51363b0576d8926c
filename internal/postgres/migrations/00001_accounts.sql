-- +goose Up

-- One row about this deployment. compatible_from is the oldest schema version whose programs still work
-- with this schema; a migration that ends such a compatibility raises it.
CREATE TABLE schema_state (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    deployment_id   uuid    NOT NULL DEFAULT gen_random_uuid(),
    compatible_from bigint  NOT NULL
);
INSERT INTO schema_state (compatible_from) VALUES (1);

-- An account owns things. issuer and subject are those that sign in to it, empty once it is released;
-- seen_at is when the issuer last said what name, email and groups hold. Everything that grows begins its key with the account, so that the database
-- can be split by account. Only the directory_ tables cross accounts, and they stay small.
CREATE TABLE accounts (
    id          uuid        PRIMARY KEY,
    kind        text        NOT NULL CHECK (kind IN ('person')),
    username    text        NOT NULL,
    issuer      text        NOT NULL,
    subject     text        NOT NULL,
    name        text        NOT NULL,
    email       text        NOT NULL,
    groups      text[]      NOT NULL,
    seen_at     timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz
);

CREATE TABLE directory_names (
    username   text PRIMARY KEY,
    account_id uuid NOT NULL UNIQUE
);

CREATE TABLE directory_identities (
    issuer     text NOT NULL,
    subject    text NOT NULL,
    account_id uuid NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX directory_identities_account ON directory_identities (account_id);

CREATE TABLE directory_tokens (
    hash       bytea PRIMARY KEY,
    account_id uuid  NOT NULL,
    token_id   uuid  NOT NULL UNIQUE
);

-- parent_id is the token that this one was made with: it cannot outlive or exceed it.
CREATE TABLE tokens (
    account_id   uuid        NOT NULL,
    id           uuid        NOT NULL,
    parent_id    uuid,
    name         text        NOT NULL,
    role         text        NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
    restricted   boolean     NOT NULL,
    hash         bytea       NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX tokens_parent ON tokens (account_id, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX tokens_listed ON tokens (account_id, id DESC) WHERE revoked_at IS NULL;

-- What a restricted token may reach, by id: a renamed target stays, a re-created one does not.
CREATE TABLE token_targets (
    account_id       uuid NOT NULL,
    token_id         uuid NOT NULL,
    target_kind      text NOT NULL CHECK (target_kind IN ('namespace', 'dataset')),
    target_account_id uuid NOT NULL,
    target_id        uuid NOT NULL,
    PRIMARY KEY (account_id, token_id, target_kind, target_id)
);

-- account_id is the account in which the effect is; the caller may be another one.
CREATE TABLE idempotency (
    account_id   uuid        NOT NULL,
    caller_id    uuid        NOT NULL,
    operation    text        NOT NULL,
    key          text        NOT NULL,
    request_hash bytea       NOT NULL,
    made_id      uuid        NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, caller_id, operation, key)
);
CREATE INDEX idempotency_age ON idempotency (account_id, created_at);

-- What happened, in the account it happened to. Partitions are made ahead by the service; the default
-- one takes what would otherwise be lost.
CREATE TABLE audit (
    account_id uuid        NOT NULL,
    at         timestamptz NOT NULL,
    id         uuid        NOT NULL,
    actor_id   uuid,
    actor      text        NOT NULL,
    token_id   uuid,
    address    text        NOT NULL,
    request_id text        NOT NULL,
    action     text        NOT NULL,
    kind       text        NOT NULL, -- of the thing it happened to, which is kept by id and by name:
    target     text        NOT NULL, -- it may be gone when somebody reads this
    namespace  text        NOT NULL,
    dataset    text        NOT NULL,
    detail     text        NOT NULL,
    outcome    text        NOT NULL,
    PRIMARY KEY (account_id, at, id)
) PARTITION BY RANGE (at);
CREATE TABLE audit_default PARTITION OF audit DEFAULT;

-- The service calls this ahead of time for each month. It runs with the rights of the role that migrates,
-- so the role of the service needs none to create tables.
-- +goose StatementBegin
CREATE FUNCTION audit_partition(month date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    since timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
    until timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') AT TIME ZONE 'UTC';
    name  text        := 'audit_' || to_char(month, 'YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('audit_partition'));
    IF to_regclass(name) IS NOT NULL THEN
        RETURN;
    END IF;

    LOCK TABLE audit_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE audit INCLUDING ALL)', name);
    EXECUTE format('WITH late AS (DELETE FROM audit_default WHERE at >= %1$L AND at < %2$L RETURNING *) INSERT INTO %3$I SELECT * FROM late',
        since, until, name);
    EXECUTE format('ALTER TABLE audit ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, since, until);
END $$;
-- +goose StatementEnd
