package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const (
	// The rights that the serving role needs on each object. Only objects that belong to the owner of schema_state
	// belong to Quern. The role uses partitions through their parent, so it needs no rights on them.
	sqlNeeded = `
		ours AS (SELECT relowner AS owner, relnamespace AS schema FROM pg_class WHERE oid = to_regclass('schema_state')),
		rights AS (
			SELECT c.oid, c.relkind = 'S' AS is_sequence, c.oid::regclass::text AS name,
				EXISTS (SELECT FROM pg_partition_ancestors(c.oid) a WHERE a.relid = to_regclass('audit')) AS is_audit,
				CASE
					WHEN c.relispartition THEN '{}'
					WHEN c.relname IN ('schema_state', 'goose_db_version', 'river_migration') THEN '{SELECT}'
					WHEN c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.refobjid = to_regclass('goose_db_version')) THEN '{}'
					WHEN c.relkind = 'S' THEN '{USAGE}'
					WHEN c.oid = to_regclass('audit') THEN '{SELECT,INSERT}'
					ELSE '{SELECT,INSERT,UPDATE,DELETE}'
				END::text[] AS needed
			FROM ours JOIN pg_class c ON c.relnamespace = ours.schema AND c.relowner = ours.owner
			WHERE c.relkind IN ('r', 'p', 'S')),
		functions AS (
			SELECT p.oid, p.oid::regprocedure::text AS name, p.prosecdef AS is_definer, p.proowner AS owner
			FROM ours JOIN pg_proc p ON p.pronamespace = ours.schema AND p.proowner = ours.owner)`

	// The rights that the role $1 lacks, and those that it has in excess: rights that could change or remove audit
	// entries, or replace an object that a function with the owner's rights uses.
	sqlRights = `WITH ` + sqlNeeded + `
		SELECT false, format('%s on %s', r, name) FROM rights, unnest(needed) r
		WHERE NOT CASE WHEN is_sequence THEN has_sequence_privilege($1::name, oid, r) ELSE has_table_privilege($1::name, oid, r) END
		UNION ALL
		SELECT false, format('EXECUTE on %s', name) FROM functions WHERE NOT has_function_privilege($1::name, oid, 'EXECUTE')
		UNION ALL
		SELECT false, format('USAGE on schema %s', schema::regnamespace) FROM ours WHERE NOT has_schema_privilege($1::name, schema, 'USAGE')
		UNION ALL
		SELECT true, format('%s on %s', r, name) FROM rights, unnest('{UPDATE,DELETE,TRUNCATE,TRIGGER}'::text[]) r
		WHERE is_audit AND (has_table_privilege($1::name, oid, r) OR r = 'UPDATE' AND has_any_column_privilege($1::name, oid, r))
		UNION ALL
		SELECT true, format('CREATE on schema %s', schema::regnamespace) FROM ours WHERE has_schema_privilege($1::name, schema, 'CREATE')
		UNION ALL
		SELECT true, format('ownership of %s', c.oid::regclass) FROM ours, pg_class c
		WHERE EXISTS (SELECT FROM pg_partition_ancestors(c.oid) a WHERE a.relid = to_regclass('audit')) AND c.relkind IN ('r', 'p')
			AND c.relowner <> ours.owner AND pg_has_role($1::name, c.relowner, 'MEMBER')
		ORDER BY 1, 2`

	// Whether the role $1 may act as the owner, who can do everything.
	sqlActsAsOwner = `SELECT coalesce(pg_has_role($1::name, (SELECT relowner FROM pg_class WHERE oid = to_regclass('schema_state')), 'MEMBER'), false)`

	// Whether the role $1 exists, whether it can do what the current role can, and the name of the current role.
	sqlRole = `
		SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1::name),
			coalesce((SELECT pg_has_role(oid, (SELECT oid FROM pg_roles WHERE rolname = current_user), 'MEMBER') FROM pg_roles WHERE rolname = $1::name), false),
			current_user::text`

	// Prevents partitions and grants from being created at the same time.
	sqlLockGrants = `SELECT pg_advisory_xact_lock(hashtext('audit_partition')), pg_advisory_xact_lock(hashtext('run_events_partition'))`

	// The statements that grant the role $1 what it needs and nothing else. Default privileges are for objects that
	// later migrations create, because running programs must be able to use these at once. The documentation of older
	// releases granted default privileges for all schemas.
	sqlGrants = `WITH ` + sqlNeeded + `
		SELECT statement FROM (
			SELECT 0, format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), $1::name) AS statement
			WHERE NOT has_database_privilege($1::name, current_database(), 'CONNECT')
			UNION ALL
			SELECT n, format(s, schema::regnamespace, $1::name) FROM ours, unnest(ARRAY[
				'GRANT USAGE ON SCHEMA %s TO %I', 'REVOKE CREATE ON SCHEMA %s FROM PUBLIC, %I',
				'ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM %2$I', 'ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM %2$I',
				'ALTER DEFAULT PRIVILEGES IN SCHEMA %s REVOKE ALL ON TABLES FROM %I', 'ALTER DEFAULT PRIVILEGES IN SCHEMA %s REVOKE ALL ON SEQUENCES FROM %I',
				'ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
				'ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT USAGE ON SEQUENCES TO %I']) WITH ORDINALITY s (s, n)
			UNION ALL
			SELECT 11, format('REVOKE ALL ON %s %s FROM %s%I', CASE WHEN is_sequence THEN 'SEQUENCE' ELSE 'TABLE' END, name, CASE WHEN is_audit THEN 'PUBLIC, ' END, $1::name)
			FROM rights
			UNION ALL
			SELECT 12, format('GRANT %s ON %s %s TO %I', array_to_string(needed, ', '), CASE WHEN is_sequence THEN 'SEQUENCE' ELSE 'TABLE' END, name, $1::name)
			FROM rights WHERE needed <> '{}'
			UNION ALL
			SELECT 13, format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name) FROM functions WHERE is_definer
			UNION ALL
			SELECT 14, format('GRANT EXECUTE ON FUNCTION %s TO %I', name, $1::name) FROM functions) s (place, statement)
		ORDER BY place, statement`
)

// selectRights returns the rights that the role lacks and those that it has in excess.
func selectRights(ctx context.Context, q Querier, role string) (missing, excess []string, err error) {
	rows, err := q.Query(ctx, sqlRights, role)
	if err != nil {
		return nil, nil, err
	}

	var (
		isExcess bool
		right    string
	)

	_, err = pgx.ForEachRow(rows, []any{&isExcess, &right}, func() error {
		if isExcess {
			excess = append(excess, right)
		} else {
			missing = append(missing, right)
		}

		return nil
	})

	return missing, excess, err
}

func selectGrants(ctx context.Context, q Querier, role string) ([]string, error) {
	rows, err := q.Query(ctx, sqlGrants, role)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}
