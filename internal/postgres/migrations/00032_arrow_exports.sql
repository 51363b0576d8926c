-- +goose Up

-- A dataset can also be exported as an Arrow IPC stream.
ALTER TABLE exports DROP CONSTRAINT exports_format_check;
ALTER TABLE exports ADD CONSTRAINT exports_format_check CHECK (format IN ('csv', 'csv-escaped', 'ndjson', 'parquet', 'arrow'));
