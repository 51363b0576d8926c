-- +goose Up

-- origin_id names the file of a source from which an ingestion has its rows. All ingestions of the same file have the same origin: its rows are found by it when the content of
-- the file is replaced, or when the file is gone.
ALTER TABLE ingestions ADD COLUMN origin_id uuid;
CREATE INDEX ingestions_origin ON ingestions (account_id, dataset_id, origin_id) WHERE origin_id IS NOT NULL;

-- What a source does about loaded files that have changed or are gone.
ALTER TABLE sources
    ADD COLUMN changed text NOT NULL DEFAULT 'keep',
    ADD COLUMN deleted text NOT NULL DEFAULT 'keep';

-- replaces: rows of an earlier content may be in the dataset, so the next load replaces them. ingestion_id of a file that is being removed is that of the removal.
ALTER TABLE source_files
    ADD COLUMN origin_id uuid    NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN replaces  boolean NOT NULL DEFAULT false;

UPDATE ingestions i SET origin_id = f.origin_id FROM source_files f
WHERE i.account_id = f.owner_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id;
