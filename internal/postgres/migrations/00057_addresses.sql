-- +goose Up

-- Files behind HTTPS addresses: a source names them, and etag and seen of a file are the SHA-256 of its content. validator is what the server said about the content that seen
-- names, so that the content is not sent again.
ALTER TABLE sources ADD COLUMN paths text[] NOT NULL DEFAULT '{}';
ALTER TABLE source_files ADD COLUMN validator jsonb NOT NULL DEFAULT '{}';
