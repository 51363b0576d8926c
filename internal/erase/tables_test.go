package erase

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// erasedBy says for each table with rows of accounts what removes the rows of a dataset or a user that is erased.
func erasedBy() map[string]string {
	const rows, objects, stays = "sql_rows.go", "the package that removes the objects", "stays"

	return map[string]string{
		"audit": "Desk.Finish", "benchmark_datasets": rows, "benchmark_results": rows, "benchmarks": rows, "connections": rows, "conversations": rows,
		"dataset_drafts": rows, "dataset_search": "the trigger of datasets", "datasets": rows, "definitions": rows, "directory_connections": rows, "directory_grants": rows,
		"directory_identities": rows, "directory_names": rows, "directory_tokens": rows, "directory_webhooks": rows, "engine_schemas": rows,
		"erasures": stays, "events": rows, "exports": objects, "grants": rows, "idempotency": rows, "ingestion_files": objects, "ingestions": objects,
		"lake_files": objects, "lake_joins": objects, "lake_parts": objects, "lake_profiles": objects, "lake_schemas": objects, "lake_snapshots": objects,
		"lake_tables": objects, "lake_upkeep": objects, "leases": "the worker that holds it", "limits": rows, "model_calls": rows, "namespaces": rows, "new_events": rows,
		"remembered": rows, "run_events": "package run", "run_feedback": rows, "run_objects": objects, "run_reads": "package run", "runs": "package run",
		"semantics": rows, "document_chunks": objects, "document_corrections": objects, "document_pages": objects, "document_records": objects, "set_aside_rows": objects, "source_files": rows, "source_runs": rows, "sources": rows, "statement_pieces": objects, "statement_reads": "package query", "statements": "package query",
		"token_targets": rows, "tokens": rows, "upload_files": objects, "upload_sessions": objects, "usage": rows, "verified_questions": rows,
		"verified_wordings": rows, "webhook_deliveries": rows, "webhook_lanes": rows, "webhooks": rows,
	}
}

// TestTables fails for a table with rows of accounts that is not in the list above. Decide what an erasure does with it, and add a case to TestErasure.
func TestTables(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	rows, err := conn.Query(t.Context(), `
		SELECT DISTINCT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'account_id'`)
	require.NoError(t, err)

	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 40)

	known := erasedBy()
	for _, table := range tables {
		require.Contains(t, known, table)
		delete(known, table)
	}

	require.Empty(t, known, "these tables do not exist")
}
