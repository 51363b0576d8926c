-- +goose Up

-- Questions with the statements that answer them, of a namespace. needs names datasets by account and id, with the columns that the statement
-- needs and their types.
CREATE TABLE verified_questions (
    account_id   uuid        NOT NULL,
    namespace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    revision     bigint      NOT NULL,
    status       text        NOT NULL CHECK (status IN ('verified', 'suspended', 'retired')),
    reason       text        NOT NULL,
    content      jsonb       NOT NULL,
    needs        jsonb       NOT NULL,
    author_id    uuid        NOT NULL,
    author       text        NOT NULL,
    verified_at  timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, namespace_id, id)
);
CREATE INDEX verified_questions_status ON verified_questions (account_id, namespace_id, status, id);

-- The wordings of verified and suspended questions, by hashes. shape is the kinds of the parameters in the wording, '=' for the hash of all
-- words in their order, and '~' for the hash of the words without one of them.
CREATE TABLE verified_wordings (
    account_id   uuid     NOT NULL,
    namespace_id uuid     NOT NULL,
    shape        text     NOT NULL,
    key          bigint   NOT NULL,
    form         bigint   NOT NULL,
    id           uuid     NOT NULL,
    wording      smallint NOT NULL,
    PRIMARY KEY (account_id, namespace_id, shape, key, id, form)
);
-- No two questions of a namespace have the same wording.
CREATE UNIQUE INDEX verified_wordings_form ON verified_wordings (account_id, namespace_id, shape, form) WHERE shape <> '~';
CREATE INDEX verified_wordings_question ON verified_wordings (account_id, namespace_id, id);
