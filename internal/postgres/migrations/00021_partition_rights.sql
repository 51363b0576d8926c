-- +goose Up

-- A new partition of the audit is the owner's alone. The service reads and adds to it through its parent, for which it needs no right to the
-- partition itself; default privileges could let it change entries there.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit_partition(month date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    since timestamptz := date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
    until timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') AT TIME ZONE 'UTC';
    name  text        := 'audit_' || to_char(month, 'YYYY_MM');
    role  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('audit_partition'));
    IF to_regclass(name) IS NOT NULL THEN
        RETURN;
    END IF;

    LOCK TABLE audit_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE audit INCLUDING ALL)', name);
    FOR role IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(name) AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %I FROM %s', name, role);
    END LOOP;
    EXECUTE format('WITH late AS (DELETE FROM audit_default WHERE at >= %1$L AND at < %2$L RETURNING *) INSERT INTO %3$I SELECT * FROM late',
        since, until, name);
    EXECUTE format('ALTER TABLE audit ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, since, until);
END $$;
-- +goose StatementEnd

-- These functions have the rights of the role that migrates, whoever calls them. Temporary tables are found before all others unless pg_temp
-- is named last: a caller could put a table of its own in the place of ours, with a trigger that would then run with these rights.
-- +goose StatementBegin
DO $$
DECLARE
    function text;
BEGIN
    FOREACH function IN ARRAY ARRAY['audit_partition(date)', 'run_events_partition(date)', 'run_events_drop(timestamptz)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', function, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
