-- +goose Up

-- The source that loads, and the names of the columns that its files or rows had. The next load of the source is compared with them.
ALTER TABLE ingestions
    ADD source_id    uuid,
    ADD source_names text[];
CREATE INDEX ingestions_source ON ingestions (account_id, dataset_id, source_id, id) WHERE source_id IS NOT NULL;
