-- +goose Up

-- Which objects the snapshots of a table still need follows from rows. A data file has the last generation that it
-- was in (generation), a manifest too (manifest_generation). One that went while the generation stayed, because its
-- rows or entries are in another one now, has none: left_sequence is that of the first snapshot without it. So an
-- object is needed by no snapshot from one on if its generation is less than that of the snapshot, or its
-- left_sequence is not greater than the snapshot's. NULL in all of them is unknown.
-- place is where the rows of a file that was made of others stand among the files: that of the first of them. For all
-- others it is NULL, which is their id.
ALTER TABLE lake_files
    ADD manifest_generation bigint,
    ADD left_sequence       bigint,
    ADD place               uuid;
CREATE INDEX lake_files_manifests ON lake_files (account_id, dataset_id, manifest_generation) WHERE manifest_generation IS NOT NULL;
CREATE INDEX lake_files_left ON lake_files (account_id, dataset_id, left_sequence) WHERE left_sequence IS NOT NULL;

-- Manifests of older releases count as if they had been in use until now.
UPDATE lake_files f
SET manifest_generation = t.generation
FROM lake_tables t
WHERE t.account_id = f.account_id AND t.dataset_id = f.dataset_id
  AND f.kind = 'metadata' AND f.state = 'committed' AND f.object_key LIKE '%-m0.avro';

-- Where the rows of a file come from that was made of others: from first on, row_count of them. What they say is said
-- of a file that was made of one source in its row of lake_files.
CREATE TABLE lake_parts (
    account_id   uuid     NOT NULL,
    dataset_id   uuid     NOT NULL,
    file_id      uuid     NOT NULL,
    first        bigint   NOT NULL,
    row_count    bigint   NOT NULL,
    ingestion_id uuid,
    source_id    uuid,
    source_name  text     NOT NULL,
    first_row    bigint   NOT NULL,
    skipped      bigint[] NOT NULL,
    PRIMARY KEY (account_id, dataset_id, file_id, first)
);

-- generation is that of the table when the snapshot was made; NULL if a release did it that did not say so.
ALTER TABLE lake_snapshots
    ADD generation bigint,
    DROP CONSTRAINT lake_snapshots_operation_check,
    ADD CONSTRAINT lake_snapshots_operation_check CHECK (operation IN ('append', 'replace', 'clear', 'restore', 'compact'));
CREATE INDEX lake_snapshots_unknown ON lake_snapshots (account_id, dataset_id) WHERE generation IS NULL;

UPDATE lake_snapshots s
SET generation = counted.generation
FROM (
    SELECT account_id, dataset_id, sequence,
        count(*) FILTER (WHERE operation <> 'append') OVER (PARTITION BY account_id, dataset_id ORDER BY sequence) AS generation
    FROM lake_snapshots) counted
WHERE counted.account_id = s.account_id AND counted.dataset_id = s.dataset_id AND counted.sequence = s.sequence;

-- superseded_at is since when the oldest snapshot that is kept is no longer in force; NULL while it is.
ALTER TABLE lake_tables ADD superseded_at timestamptz;
CREATE INDEX lake_tables_superseded ON lake_tables (superseded_at) WHERE superseded_at IS NOT NULL;

UPDATE lake_tables t
SET superseded_at = s.committed_at
FROM lake_snapshots s
WHERE s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.sequence = 2;
