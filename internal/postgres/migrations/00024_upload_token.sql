-- +goose Up

-- The API token with which a session was prepared. A restricted token reaches only its own sessions. Older sessions have none.
ALTER TABLE upload_sessions ADD token_id uuid;
