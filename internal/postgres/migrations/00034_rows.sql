-- +goose Up

-- Rows can be deleted by a condition, and merged by a key. key_columns of an ingestion is the key of a merge.
ALTER TABLE ingestions ADD key_columns text[] NOT NULL DEFAULT '{}';
ALTER TABLE ingestions DROP CONSTRAINT ingestions_mode_check;
ALTER TABLE ingestions ADD CONSTRAINT ingestions_mode_check CHECK (mode IN ('append', 'replace', 'delete', 'merge'));
ALTER TABLE lake_snapshots DROP CONSTRAINT lake_snapshots_operation_check;
ALTER TABLE lake_snapshots
    ADD CONSTRAINT lake_snapshots_operation_check CHECK (operation IN ('append', 'replace', 'clear', 'restore', 'compact', 'delete', 'merge'));
