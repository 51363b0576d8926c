-- +goose Up
-- Deleted datasets that nobody can restore any more: their tables were removed. Since this version the cleanup removes their rows together
-- with the table. What an interrupted transfer left is younger.
CREATE TEMPORARY TABLE forgotten ON COMMIT DROP AS
    SELECT d.account_id, d.id FROM datasets d
    WHERE d.deleted_at < now() - interval '30 days' AND NOT EXISTS (SELECT FROM lake_tables t WHERE t.account_id = d.account_id AND t.dataset_id = d.id);
DELETE FROM definitions v USING forgotten f WHERE v.account_id = f.account_id AND v.dataset_id = f.id;
DELETE FROM semantics s USING forgotten f WHERE s.account_id = f.account_id AND s.dataset_id = f.id;
DELETE FROM remembered r USING forgotten f WHERE r.account_id = f.account_id AND r.dataset_id = f.id;
DELETE FROM directory_grants g USING forgotten f WHERE g.account_id = f.account_id AND g.dataset_id = f.id;
DELETE FROM grants g USING forgotten f WHERE g.account_id = f.account_id AND g.target_id = f.id;
DELETE FROM datasets d USING forgotten f WHERE d.account_id = f.account_id AND d.id = f.id;
