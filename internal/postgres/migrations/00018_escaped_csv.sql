-- +goose Up

-- CSV in which no cell begins as a formula is a format of its own: both may be asked for of one snapshot.
ALTER TABLE exports DROP CONSTRAINT exports_format_check;
ALTER TABLE exports ADD CONSTRAINT exports_format_check CHECK (format IN ('csv', 'csv-escaped', 'ndjson', 'parquet'));
