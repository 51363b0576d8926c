-- +goose Up

-- Answers of a model about parts of documents, until the ingestion is completed: a worker that takes over does not ask again. The answer is
-- NULL if it was too long, so that the halves are asked about.
CREATE TABLE document_chunks (
    account_id    uuid   NOT NULL,
    dataset_id    uuid   NOT NULL,
    ingestion_id  uuid   NOT NULL,
    position      int    NOT NULL,
    hash          bytea  NOT NULL,
    answer        text,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    PRIMARY KEY (account_id, dataset_id, ingestion_id, position, hash)
);

-- The records of documents, with the page, the characters and the words that each field was read from.
CREATE TABLE document_records (
    account_id   uuid   NOT NULL,
    dataset_id   uuid   NOT NULL,
    ingestion_id uuid   NOT NULL,
    position     int    NOT NULL,
    number       bigint NOT NULL,
    row_number   bigint, -- NULL if no field has a value, so that there is no row
    page         int    NOT NULL,
    fields       jsonb  NOT NULL,
    PRIMARY KEY (account_id, dataset_id, ingestion_id, position, number)
);

-- Of documents that a model reads. NULL for other files.
ALTER TABLE ingestion_files ADD pages int, ADD input_tokens bigint, ADD output_tokens bigint;
ALTER TABLE ingestions ADD pages_done int NOT NULL DEFAULT 0, ADD pages_total int NOT NULL DEFAULT 0;
