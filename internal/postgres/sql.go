package postgres

const (
	sqlSchemaExists = `SELECT to_regclass('schema_state') IS NOT NULL`

	sqlDeploymentID = `SELECT deployment_id::text FROM schema_state`

	sqlSchemaRead = `SELECT (SELECT max(version_id) FROM goose_db_version WHERE is_applied), compatible_from FROM schema_state`
)
