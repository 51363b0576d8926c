-- +goose Up
-- Limits for everyone and for groups of the issuer, beside those of accounts in the table limits. They belong to no account and are few.
-- The subject of everyone is ''. An amount of 9223372036854775807 means no limit. Amounts of querySeconds are milliseconds, in usage too.
CREATE TABLE directory_limits (
    subject_kind text   NOT NULL CHECK (subject_kind IN ('everyone', 'group')),
    subject_id   text   NOT NULL,
    kind         text   NOT NULL,
    amount       bigint NOT NULL CHECK (amount >= 0),
    PRIMARY KEY (subject_kind, subject_id, kind)
);
