-- +goose Up

-- Of a file that was loaded from a document: the number of the first row of each page, in the order of the pages. NULL for other files.
ALTER TABLE lake_files ADD pages bigint[];
ALTER TABLE lake_parts ADD pages bigint[];
