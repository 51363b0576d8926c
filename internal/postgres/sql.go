package postgres

const (
	sqlSchemaExists = `SELECT to_regclass('schema_state') IS NOT NULL`

	sqlDeploymentID = `SELECT deployment_id::text FROM schema_state`

	sqlSchemaRead = `SELECT (SELECT max(version_id) FROM goose_db_version WHERE is_applied), compatible_from FROM schema_state`

	sqlCondition = `
		SELECT current_setting('server_version_num')::int, pg_encoding_to_char(encoding), current_user::text, datname::text, pg_is_in_recovery(),
			current_setting('max_connections')::int, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
		FROM pg_database WHERE datname = current_database()`

	// What the migrations keep of themselves is only read.
	sqlTableRights = `
		SELECT count(*), count(*) FILTER (WHERE NOT (has_table_privilege(c.oid, 'SELECT')
			AND (has_table_privilege(c.oid, 'INSERT') OR c.relname IN ('schema_state', 'goose_db_version', 'river_migration'))))
		FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`

	sqlSchemaReadable = `
		SELECT to_regclass('schema_state') IS NOT NULL,
			coalesce(has_table_privilege(to_regclass('schema_state'), 'SELECT') AND has_table_privilege(to_regclass('goose_db_version'), 'SELECT'), false)`

	sqlClock = `SELECT clock_timestamp()`
)
