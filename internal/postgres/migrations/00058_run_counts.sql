-- +goose Up

-- How many rows of its origin an ingestion has replaced.
ALTER TABLE ingestions ADD COLUMN rows_replaced bigint NOT NULL DEFAULT 0;

-- What a run has done, beside the files and rows that it has loaded. replaced and removed are files. empty and left_out are files that were found and not loaded: without any
-- bytes, or with a content that has failed before.
ALTER TABLE source_runs
    ADD COLUMN replaced       bigint NOT NULL DEFAULT 0,
    ADD COLUMN removed        bigint NOT NULL DEFAULT 0,
    ADD COLUMN rows_replaced  bigint NOT NULL DEFAULT 0,
    ADD COLUMN rows_removed   bigint NOT NULL DEFAULT 0,
    ADD COLUMN rows_set_aside bigint NOT NULL DEFAULT 0,
    ADD COLUMN empty          bigint NOT NULL DEFAULT 0,
    ADD COLUMN left_out       bigint NOT NULL DEFAULT 0;
