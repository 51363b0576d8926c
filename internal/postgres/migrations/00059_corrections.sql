-- +goose Up

-- What people decided about fields of the records of documents. It is found by the bytes of the document and by the place of the record in it, so that it
-- holds whenever the document is read again for the dataset. key has what the document proves for the fields of the key.
CREATE TABLE document_corrections (
    account_id   uuid        NOT NULL,
    dataset_id   uuid        NOT NULL,
    document     bytea       NOT NULL, -- SHA-256
    field        text        NOT NULL,
    page         int         NOT NULL,
    begins       int         NOT NULL,
    ends         int         NOT NULL,
    rank         int         NOT NULL, -- among the records at the same place
    ranks        int         NOT NULL,
    key          jsonb       NOT NULL,
    value        text        NOT NULL, -- empty: the field has no value
    corrected_by uuid        NOT NULL,
    corrected_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, document, field, page, begins, ends, rank)
);

-- The text of the pages of documents that the quotes of their records stand on.
CREATE TABLE document_pages (
    account_id   uuid NOT NULL,
    dataset_id   uuid NOT NULL,
    ingestion_id uuid NOT NULL,
    position     int  NOT NULL,
    page         int  NOT NULL,
    text         text NOT NULL,
    PRIMARY KEY (account_id, dataset_id, ingestion_id, position, page)
);

-- anchor is the place of the record in the document, NULL if it was read before this change. flagged: a field is in doubt and nobody has corrected it.
ALTER TABLE document_records ADD anchor jsonb, ADD flagged boolean NOT NULL DEFAULT false;
UPDATE document_records SET flagged = true WHERE jsonb_path_exists(fields, '$.*.flag');
CREATE INDEX document_records_flagged ON document_records (account_id, dataset_id, ingestion_id, position, number) WHERE flagged;

-- SHA-256 of a document that a model has read. Unlike digest it stays when the rows are replaced.
ALTER TABLE ingestion_files ADD document bytea;
UPDATE ingestion_files SET document = digest WHERE pages IS NOT NULL;

-- The answers of a model stay as long as the records, and are found by what was asked.
CREATE INDEX document_chunks_hash ON document_chunks (account_id, dataset_id, hash);

-- The ingestion whose rows are replaced because its documents are loaded again.
ALTER TABLE ingestions ADD reloads_id uuid;
