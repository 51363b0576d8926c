-- +goose Up

-- Who may use a connection of another account. A subject is the same as in grants. A connection that is deleted has no rows here.
CREATE TABLE directory_connections (
    subject_kind  text NOT NULL CHECK (subject_kind IN ('account', 'group', 'name')),
    subject_id    text NOT NULL,
    connection_id uuid NOT NULL,
    account_id    uuid NOT NULL, -- the owner of the connection
    PRIMARY KEY (subject_kind, subject_id, connection_id)
);
CREATE INDEX directory_connections_owner ON directory_connections (account_id, connection_id);
