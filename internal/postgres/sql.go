package postgres

const (
	sqlSchemaExists = `SELECT to_regclass('schema_state') IS NOT NULL`

	// A copy of the database differs from the original in one of three numbers: that of the server, the database or
	// the table.
	sqlEpochRead = `
		SELECT s.deployment_id::text, c.system_identifier || '/' || d.oid || '/' || e.tableoid, e.epoch, e.mark, e.bound
		FROM schema_state s, store_epoch e, pg_database d, pg_control_system() c WHERE d.datname = current_database()`
	sqlEpochBind  = `UPDATE store_epoch SET bound = true WHERE NOT bound`
	sqlEpochRaise = `
		UPDATE store_epoch SET epoch = greatest(epoch, $1) + 1, bound = true, mark = greatest(clock_timestamp(), mark + interval '1 microsecond')`
	sqlEpochMark = `
		UPDATE store_epoch SET mark = greatest(clock_timestamp(), $1, mark + interval '1 microsecond')
		WHERE epoch = $2 AND mark NOT BETWEEN clock_timestamp() - $3::interval AND clock_timestamp()`

	sqlExportState = `SELECT pg_export_snapshot()`

	sqlNoteRead = `SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = current_database()`
	sqlNoteText = `SELECT format('COMMENT ON DATABASE %I IS %L', current_database(), nullif($1::text, ''))`
	sqlIsEmpty  = `
		SELECT NOT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' AND n.nspname NOT LIKE 'pg_temp%')`
	sqlRename = `UPDATE schema_state SET deployment_id = $1::text::uuid`
	sqlUnmark = `UPDATE store_epoch SET bound = true`

	// Migrations are not always applied in the order of their numbers: the version is the one before the first that is missing.
	sqlSchemaRead = `
		SELECT coalesce(
			(SELECT min(number) - 1 FROM unnest($1::bigint[]) AS number WHERE number NOT IN (SELECT version_id FROM goose_db_version WHERE is_applied)),
			(SELECT max(version_id) FROM goose_db_version WHERE is_applied)), compatible_from
		FROM schema_state`

	sqlCondition = `
		SELECT current_setting('server_version_num')::int, pg_encoding_to_char(encoding), current_user::text, datname::text, pg_is_in_recovery(),
			current_setting('max_connections')::int, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
			current_setting('statement_timeout') = '0'
		FROM pg_database WHERE datname = current_database()`

	sqlSchemaReadable = `
		SELECT to_regclass('schema_state') IS NOT NULL,
			coalesce(has_table_privilege(to_regclass('schema_state'), 'SELECT') AND has_table_privilege(to_regclass('goose_db_version'), 'SELECT'), false)`

	sqlClock = `SELECT clock_timestamp()`
)
