-- +goose Up
-- The engine that reads a dataset. The operator chooses it.
ALTER TABLE datasets ADD COLUMN engine text NOT NULL DEFAULT 'duckdb' CHECK (engine IN ('duckdb', 'trino'));

-- The few datasets of Trino are listed without reading the others.
CREATE INDEX datasets_on_trino ON datasets (account_id, id) WHERE engine = 'trino';
