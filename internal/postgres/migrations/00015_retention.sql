-- +goose Up

-- Who read a dataset is gone through in order, so that two who erase meet in the same order.
DROP INDEX run_reads_dataset;
CREATE INDEX run_reads_dataset ON run_reads (dataset_account, dataset_id, account_id, run_id);

-- Runs that are kept for a while are removed oldest first.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
