-- +goose Up

-- The runs of a caller are listed newest first: ids begin with their time. namespace_id is that of the run's conversation.
ALTER TABLE runs ADD COLUMN namespace_id uuid;
UPDATE runs r SET namespace_id = c.namespace_id FROM conversations c WHERE c.account_id = r.account_id AND c.id = r.conversation_id;
CREATE INDEX runs_status ON runs (account_id, status, id DESC);
CREATE INDEX runs_namespace ON runs (account_id, namespace_id, status, id DESC);
