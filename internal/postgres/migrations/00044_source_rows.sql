-- +goose Up

-- Sources of rows of a database. reads says what is read, and is null for a source of files. cursor is the highest value that is loaded. load is the load in progress: its
-- value of the cursor becomes valid in the transaction that settles it.
ALTER TABLE sources
    ADD COLUMN reads  jsonb,
    ADD COLUMN cursor text NOT NULL DEFAULT '',
    ADD COLUMN load   jsonb;
