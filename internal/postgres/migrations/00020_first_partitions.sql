-- +goose Up

-- A new partition makes a write fail that was on its way to the default one. The service makes partitions ahead of time, so this could only
-- happen right after an installation: the partitions of now and of the next period are there from the beginning.
SELECT audit_partition(current_date);
SELECT audit_partition((current_date + interval '1 month')::date);
SELECT run_events_partition(current_date);
SELECT run_events_partition(current_date + 7);
