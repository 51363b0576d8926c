package takeout

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// leftOut says for each table with rows of accounts that is not copied why.
func leftOut() map[string]string {
	const (
		secrets = "it has secrets, or hashes of them"
		derived = "it follows from other rows or from the files"
		state   = "it is the state of work"
	)

	return map[string]string{
		"dataset_search": derived, "directory_tokens": secrets, "directory_webhooks": derived, "document_chunks": derived, "document_pages": derived,
		"engine_schemas": secrets, "idempotency": secrets, "lake_files": derived, "lake_joins": derived, "lake_parts": derived, "lake_profiles": derived,
		"lake_schemas": derived, "lake_tables": derived, "lake_upkeep": state, "leases": state, "new_events": state, "run_objects": derived,
		"run_reads": derived, "statement_pieces": derived, "statement_reads": derived, "token_targets": derived, "upload_sessions": derived,
		"webhook_lanes": state,
	}
}

// TestTables fails for a table with rows of accounts that is neither copied nor left out with a reason.
func TestTables(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	rows, err := conn.Query(t.Context(), `
		SELECT DISTINCT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'account_id'`)
	require.NoError(t, err)

	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(there), 40)

	copied, reasons := map[string]bool{"accounts": true}, leftOut()
	for _, one := range tables() {
		copied[one.name] = true

		require.Contains(t, one.statement, " FROM "+one.name+" t ")
	}

	for _, name := range there {
		require.NotEqual(t, copied[name], reasons[name] != "", "%s must be copied, or left out with a reason", name)
		delete(copied, name)
		delete(reasons, name)
	}

	require.Equal(t, map[string]bool{"accounts": true}, copied)
	require.Empty(t, reasons)
}

// TestSecrets checks that no column with a secret is copied.
func TestSecrets(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	for _, one := range tables() {
		rows, err := conn.Query(t.Context(), `
			SELECT a.attname::text FROM pg_attribute a
			WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND (a.attname ~ '(hash|secret|seal|wrap|key_id)' OR a.atttypid = 'bytea'::regtype)`, one.name)
		require.NoError(t, err)

		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)

		left, _, _ := strings.Cut(one.statement, " FROM ")

		for _, column := range columns {
			if harmless[one.name+"."+column] {
				continue
			}

			require.Contains(t, left, column, "%s.%s", one.name, column)
		}
	}
}

// harmless are columns whose names or types look like secrets.
var harmless = map[string]bool{ //nolint:gochecknoglobals // a table
	"document_corrections.document": true, "ingestion_files.digest": true, "ingestion_files.document": true, "model_calls.request_hash": true,
	"run_feedback.trace_id": true, "runs.trace_id": true, "webhooks.secret_version": true,
}

func TestComponent(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"orders.csv": "orders.csv", "../../etc/passwd": ".._.._etc_passwd", "..": "_..", "": "_", "a\x00b\nc": "a_b_c", "größe ⚖.csv": "größe ⚖.csv", strings.Repeat("é", 300): strings.Repeat("é", longest),
	} {
		require.Equal(t, want, component(name))
	}
}
