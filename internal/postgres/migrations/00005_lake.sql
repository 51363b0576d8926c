-- +goose Up

-- Iceberg's own catalog, as other programs know it (schema V1). The namespace is the account, the table is the
-- dataset, both by id. metadata_location is what a commit swaps.
CREATE TABLE iceberg_tables (
    catalog_name               text NOT NULL,
    table_namespace            text NOT NULL,
    table_name                 text NOT NULL,
    metadata_location          text,
    previous_metadata_location text,
    iceberg_type               text,
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);

CREATE TABLE iceberg_namespace_properties (
    catalog_name   text NOT NULL,
    namespace      text NOT NULL,
    property_key   text NOT NULL,
    property_value text,
    PRIMARY KEY (catalog_name, namespace, property_key)
);

-- What we know of a table beyond that. given are all columns that ever got an id, also those that are in no
-- snapshot yet, so that no id is given twice. The files of the current snapshot are those of the table's
-- generation, which rises whenever a snapshot is more than the one before with some files added: so a commit
-- writes no more rows than it has files, and who reads the table needs no look at Iceberg's metadata.
-- removed_at is when its dataset was deleted, removing says that there is no way back.
CREATE TABLE lake_tables (
    account_id     uuid    NOT NULL,
    dataset_id     uuid    NOT NULL,
    given          jsonb   NOT NULL DEFAULT '[]',
    last_column_id int     NOT NULL DEFAULT 0,
    snapshot_id    uuid,
    generation     bigint  NOT NULL DEFAULT 0,
    removed_at     timestamptz,
    removing       boolean NOT NULL DEFAULT false,
    PRIMARY KEY (account_id, dataset_id)
);
CREATE INDEX lake_tables_removal ON lake_tables (removed_at) WHERE removed_at IS NOT NULL;

-- The columns of snapshots; many have the same.
CREATE TABLE lake_schemas (
    account_id uuid  NOT NULL,
    dataset_id uuid  NOT NULL,
    id         uuid  NOT NULL,
    columns    jsonb NOT NULL,
    PRIMARY KEY (account_id, dataset_id, id)
);

-- Every snapshot, also those that Iceberg's metadata no longer names: manifest_list leads to its files.
CREATE TABLE lake_snapshots (
    account_id    uuid        NOT NULL,
    dataset_id    uuid        NOT NULL,
    id            uuid        NOT NULL,
    sequence      bigint      NOT NULL,
    number        bigint      NOT NULL, -- Iceberg's id
    operation     text        NOT NULL CHECK (operation IN ('append', 'replace', 'clear', 'restore')),
    schema_id     uuid        NOT NULL,
    row_count     bigint      NOT NULL,
    byte_count    bigint      NOT NULL,
    file_count    int         NOT NULL,
    manifest_list text        NOT NULL,
    committed_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, sequence),
    UNIQUE (account_id, dataset_id, id)
);

-- Every object of every table. The row stands before its object, and goes after it. entry and columns are what
-- a commit needs of a data file. generation is the last one of the table that it was in. remove_at is when the
-- object may go, unless somebody says that it is needed.
CREATE TABLE lake_files (
    account_id   uuid   NOT NULL,
    dataset_id   uuid   NOT NULL,
    id           uuid   NOT NULL,
    kind         text   NOT NULL CHECK (kind IN ('data', 'metadata')),
    state        text   NOT NULL CHECK (state IN ('writing', 'ready', 'committed', 'dropped', 'removing')),
    object_key   text   NOT NULL UNIQUE,
    size         bigint NOT NULL DEFAULT 0,
    row_count    bigint NOT NULL DEFAULT 0,
    ingestion_id uuid,
    source_id    uuid,
    first_row    bigint NOT NULL DEFAULT 0,
    entry        bytea,
    columns      jsonb,
    generation   bigint,
    remove_at    timestamptz,
    PRIMARY KEY (account_id, dataset_id, id)
);
CREATE INDEX lake_files_current ON lake_files (account_id, dataset_id, generation, id) WHERE generation IS NOT NULL;
CREATE INDEX lake_files_staged ON lake_files (account_id, dataset_id, ingestion_id) WHERE state IN ('writing', 'ready');
CREATE INDEX lake_files_removal ON lake_files (remove_at) WHERE remove_at IS NOT NULL;
