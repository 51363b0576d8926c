-- +goose Up
-- The columns that identify a row of a dataset, and what happens to rows of a load that violate the key. No columns: the dataset has no key.
ALTER TABLE datasets
    ADD COLUMN key_columns    text[] NOT NULL DEFAULT '{}',
    ADD COLUMN key_duplicates text   NOT NULL DEFAULT '' CHECK (key_duplicates IN ('', 'setAside', 'refuse'));
