-- +goose Up

-- Iceberg tables of other catalogs that are attached as datasets. attached says which table it is and who reads it. address is where a data file is that is not in our store; its
-- object_key names no object, and is the name of the copy in the cache. The snapshots of an attached table have the operation attach, and those of other tables never.
ALTER TABLE lake_tables ADD COLUMN attached jsonb;
ALTER TABLE lake_files ADD COLUMN address text;
ALTER TABLE lake_snapshots DROP CONSTRAINT lake_snapshots_operation_check;
ALTER TABLE lake_snapshots
    ADD CONSTRAINT lake_snapshots_operation_check CHECK (operation IN ('append', 'replace', 'clear', 'restore', 'compact', 'delete', 'merge', 'attach'));

-- attaches names the table of a source that attaches one, and is null for other sources. pinned is the snapshot of the table that a run has attached.
ALTER TABLE sources ADD COLUMN attaches jsonb;
ALTER TABLE source_runs ADD COLUMN pinned bigint;
