-- +goose Up

-- Names are kept as written and compared by name_key, in lower case. A deleted row is a tombstone: its name
-- is free at once, and the operator can restore it until the grace is over.
CREATE TABLE namespaces (
    account_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    name_key   text        NOT NULL,
    exposure   text        CHECK (exposure IN ('schema', 'values', 'rows')),
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX namespaces_name ON namespaces (account_id, name_key) WHERE deleted_at IS NULL;
ALTER TABLE namespaces ALTER account_id SET (n_distinct = -0.1);

-- epoch rises with clear, delete and restore: what was accepted under an earlier one is refused.
-- Without an exposure of its own a dataset has that of its namespace.
CREATE TABLE datasets (
    account_id          uuid        NOT NULL,
    id                  uuid        NOT NULL,
    namespace_id        uuid        NOT NULL,
    name                text        NOT NULL,
    name_key            text        NOT NULL,
    exposure            text        CHECK (exposure IN ('schema', 'values', 'rows')),
    epoch               bigint      NOT NULL DEFAULT 0,
    definition_revision bigint      NOT NULL DEFAULT 0,
    data_description    text        NOT NULL DEFAULT '',
    schema_definition   jsonb       NOT NULL DEFAULT '{}',
    columns             jsonb       NOT NULL DEFAULT '[]',
    row_count           bigint      NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    live                boolean     GENERATED ALWAYS AS (deleted_at IS NULL) STORED,
    PRIMARY KEY (account_id, id)
);
-- Two indexes that say the same of deleted_at in different words, so that the planner cannot take the one for
-- lists when it looks up a name: for an account of average size it would think that they cost the same.
CREATE UNIQUE INDEX datasets_name ON datasets (account_id, namespace_id, name_key) WHERE deleted_at IS NULL;
CREATE INDEX datasets_live ON datasets (account_id, namespace_id, id) WHERE live;
ALTER TABLE datasets ALTER account_id SET (n_distinct = -0.01);
CREATE INDEX datasets_deleted ON datasets (account_id, namespace_id, name_key, deleted_at) WHERE deleted_at IS NOT NULL;

-- Every definition that was ever in force.
CREATE TABLE definitions (
    account_id        uuid        NOT NULL,
    dataset_id        uuid        NOT NULL,
    revision          bigint      NOT NULL,
    data_description  text        NOT NULL,
    schema_definition jsonb       NOT NULL,
    actor_id          uuid        NOT NULL,
    actor             text        NOT NULL,
    at                timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, revision)
);

-- Who may do what with a namespace or a dataset. The subject is an account, a group of the issuer, or a
-- username that nobody has yet.
CREATE TABLE grants (
    account_id   uuid        NOT NULL,
    target_id    uuid        NOT NULL,
    subject_kind text        NOT NULL CHECK (subject_kind IN ('account', 'group', 'name')),
    subject_id   text        NOT NULL,
    role         text        NOT NULL CHECK (role IN ('viewer', 'editor')),
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, target_id, subject_kind, subject_id)
);

-- The inverse of each grant, for "shared with me": the one place where a subject's grants of all accounts
-- stand together. A grant on a namespace has the nil uuid as its dataset.
CREATE TABLE directory_grants (
    subject_kind text NOT NULL,
    subject_id   text NOT NULL,
    account_id   uuid NOT NULL,
    namespace_id uuid NOT NULL,
    dataset_id   uuid NOT NULL,
    PRIMARY KEY (subject_kind, subject_id, account_id, namespace_id, dataset_id)
);

-- What was used on a day (UTC), and what may be. No row in limits: no limit.
CREATE TABLE usage (
    account_id uuid   NOT NULL,
    day        date   NOT NULL,
    kind       text   NOT NULL,
    amount     bigint NOT NULL,
    PRIMARY KEY (account_id, day, kind)
);

CREATE TABLE limits (
    account_id uuid   NOT NULL,
    kind       text   NOT NULL,
    amount     bigint NOT NULL,
    PRIMARY KEY (account_id, kind)
);
