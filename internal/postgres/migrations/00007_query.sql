-- +goose Up

-- What a query has to know of a data file before it reads it. shape is a hash of the file's columns. bounds are the
-- least and the greatest value of columns, by the column's id. source_name is the name of the uploaded file, and
-- skipped are the numbers of its rows that were set aside. NULL is unknown.
ALTER TABLE lake_files
    ADD shape       text,
    ADD bounds      jsonb,
    ADD source_name text,
    ADD skipped     bigint[];

UPDATE lake_files f
SET source_name = s.filename,
    skipped     = ARRAY(
        SELECT a.row_number FROM set_aside_rows a
        WHERE a.account_id = s.account_id AND a.dataset_id = s.dataset_id AND a.ingestion_id = s.ingestion_id AND a.position = s.position
        ORDER BY a.row_number)
FROM ingestion_files s
WHERE s.account_id = f.account_id AND s.dataset_id = f.dataset_id AND s.ingestion_id = f.ingestion_id AND s.file_id = f.source_id
  AND f.state IN ('ready', 'committed');
