package takeout

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Rows as JSON. $1 is the account.
const (
	sqlAccount       = `SELECT to_jsonb(t)::text FROM accounts t WHERE id = $1`
	sqlAudit         = `SELECT to_jsonb(t)::text FROM audit t WHERE account_id = $1 ORDER BY id`
	sqlBenchDatasets = `SELECT to_jsonb(t)::text FROM benchmark_datasets t WHERE account_id = $1`
	sqlBenchResults  = `SELECT to_jsonb(t)::text FROM benchmark_results t WHERE account_id = $1`
	sqlBenchmarks    = `SELECT to_jsonb(t)::text FROM benchmarks t WHERE account_id = $1`
	sqlConnections   = `SELECT (to_jsonb(t) - '{key_id,wrapped,sealed}'::text[])::text FROM connections t WHERE account_id = $1`
	sqlConversations = `SELECT to_jsonb(t)::text FROM conversations t WHERE account_id = $1`
	sqlDrafts        = `SELECT to_jsonb(t)::text FROM dataset_drafts t WHERE account_id = $1`
	sqlDatasets      = `SELECT to_jsonb(t)::text FROM datasets t WHERE account_id = $1`
	sqlDefinitions   = `SELECT to_jsonb(t)::text FROM definitions t WHERE account_id = $1`
	sqlCorrections   = `SELECT to_jsonb(t)::text FROM document_corrections t WHERE account_id = $1`
	sqlRecords       = `SELECT to_jsonb(t)::text FROM document_records t WHERE account_id = $1`
	sqlErasures      = `SELECT to_jsonb(t)::text FROM erasures t WHERE account_id = $1`
	sqlEvents        = `SELECT to_jsonb(t)::text FROM events t WHERE account_id = $1 ORDER BY seq`
	sqlExports       = `SELECT (to_jsonb(t) - 'object_key')::text FROM exports t WHERE account_id = $1`
	sqlGrants        = `SELECT to_jsonb(t)::text FROM grants t WHERE account_id = $1`
	sqlIdentities    = `SELECT to_jsonb(t)::text FROM directory_identities t WHERE account_id = $1`
	sqlLoadedFiles   = `SELECT (to_jsonb(t) - '{sketch,part_found}'::text[])::text FROM ingestion_files t WHERE account_id = $1`
	sqlIngestions    = `SELECT to_jsonb(t)::text FROM ingestions t WHERE account_id = $1`
	sqlLimits        = `SELECT to_jsonb(t)::text FROM limits t WHERE account_id = $1`
	sqlCalls         = `SELECT to_jsonb(t)::text FROM model_calls t WHERE account_id = $1`
	sqlNames         = `SELECT to_jsonb(t)::text FROM directory_names t WHERE account_id = $1`
	sqlNamespaces    = `SELECT to_jsonb(t)::text FROM namespaces t WHERE account_id = $1`
	sqlRemembered    = `SELECT to_jsonb(t)::text FROM remembered t WHERE account_id = $1`
	sqlRunEvents     = `SELECT to_jsonb(t)::text FROM run_events t WHERE account_id = $1 ORDER BY run_id, seq`
	sqlFeedback      = `SELECT to_jsonb(t)::text FROM run_feedback t WHERE account_id = $1`
	sqlRuns          = `SELECT to_jsonb(t)::text FROM runs t WHERE account_id = $1 ORDER BY id`
	sqlSemantics     = `SELECT to_jsonb(t)::text FROM semantics t WHERE account_id = $1`
	sqlSetAside      = `SELECT to_jsonb(t)::text FROM set_aside_rows t WHERE account_id = $1`
	sqlShared        = `SELECT to_jsonb(t)::text FROM directory_grants t WHERE subject_kind = 'account' AND subject_id = $1::uuid::text`
	sqlShares        = `SELECT to_jsonb(t)::text FROM directory_connections t WHERE account_id = $1`
	sqlSnapshots     = `SELECT (to_jsonb(t) - 'manifest_list')::text FROM lake_snapshots t WHERE account_id = $1`
	sqlSourceFiles   = `SELECT to_jsonb(t)::text FROM source_files t WHERE account_id = $1`
	sqlSourceRuns    = `SELECT to_jsonb(t)::text FROM source_runs t WHERE account_id = $1`
	sqlSources       = `SELECT to_jsonb(t)::text FROM sources t WHERE account_id = $1`
	sqlStatements    = `SELECT to_jsonb(t)::text FROM statements t WHERE account_id = $1`
	sqlTokens        = `SELECT (to_jsonb(t) - 'hash')::text FROM tokens t WHERE account_id = $1`
	sqlUploads       = `SELECT (to_jsonb(t) - '{object_key,upload_id}'::text[])::text FROM upload_files t WHERE account_id = $1`
	sqlUsage         = `SELECT to_jsonb(t)::text FROM usage t WHERE account_id = $1`
	sqlVerified      = `SELECT to_jsonb(t)::text FROM verified_questions t WHERE account_id = $1`
	sqlWordings      = `SELECT to_jsonb(t)::text FROM verified_wordings t WHERE account_id = $1`
	sqlDeliveries    = `SELECT to_jsonb(t)::text FROM webhook_deliveries t WHERE account_id = $1`
	sqlWebhooks      = `SELECT (to_jsonb(t) - '{sealed,secret_check}'::text[])::text FROM webhooks t WHERE account_id = $1`
)

// table is a table whose rows are copied.
type table struct{ name, statement string }

func tables() []table {
	return []table{
		{"accounts", sqlAccount},
		{"audit", sqlAudit},
		{"benchmark_datasets", sqlBenchDatasets},
		{"benchmark_results", sqlBenchResults},
		{"benchmarks", sqlBenchmarks},
		{"connections", sqlConnections},
		{"conversations", sqlConversations},
		{"dataset_drafts", sqlDrafts},
		{"datasets", sqlDatasets},
		{"definitions", sqlDefinitions},
		{"directory_connections", sqlShares},
		{"directory_grants", sqlShared},
		{"directory_identities", sqlIdentities},
		{"directory_names", sqlNames},
		{"document_corrections", sqlCorrections},
		{"document_records", sqlRecords},
		{"erasures", sqlErasures},
		{"events", sqlEvents},
		{"exports", sqlExports},
		{"grants", sqlGrants},
		{"ingestion_files", sqlLoadedFiles},
		{"ingestions", sqlIngestions},
		{"lake_snapshots", sqlSnapshots},
		{"limits", sqlLimits},
		{"model_calls", sqlCalls},
		{"namespaces", sqlNamespaces},
		{"remembered", sqlRemembered},
		{"run_events", sqlRunEvents},
		{"run_feedback", sqlFeedback},
		{"runs", sqlRuns},
		{"semantics", sqlSemantics},
		{"set_aside_rows", sqlSetAside},
		{"source_files", sqlSourceFiles},
		{"source_runs", sqlSourceRuns},
		{"sources", sqlSources},
		{"statements", sqlStatements},
		{"tokens", sqlTokens},
		{"upload_files", sqlUploads},
		{"usage", sqlUsage},
		{"verified_questions", sqlVerified},
		{"verified_wordings", sqlWordings},
		{"webhook_deliveries", sqlDeliveries},
		{"webhooks", sqlWebhooks},
	}
}

func each(ctx context.Context, q postgres.Querier, statement string, account uuid.UUID, do func(row string) error) error {
	rows, err := q.Query(ctx, statement, account)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		var row string

		if err := rows.Scan(&row); err != nil {
			return err
		}

		if err := do(row); err != nil {
			return err
		}
	}

	return rows.Err()
}

const (
	sqlUploadedFiles = `
		SELECT object_key, size, session_id, position, filename FROM upload_files
		WHERE account_id = $1 AND status = 'completed' AND removed_at IS NULL ORDER BY session_id, position`
	sqlDataFiles = `
		SELECT f.object_key, f.size, n.name, d.name || CASE WHEN d.deleted_at IS NULL THEN '' ELSE '-' || d.id END, f.id
		FROM lake_files f JOIN datasets d ON d.account_id = f.account_id AND d.id = f.dataset_id JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
		WHERE f.account_id = $1 AND f.kind = 'data' AND f.state = 'committed' AND f.left_sequence IS NULL AND f.remove_at IS NULL AND f.address IS NULL ORDER BY f.id`
	sqlRunFiles = `SELECT object_key, size, run_id, step FROM run_objects WHERE account_id = $1 AND state = 'kept' ORDER BY run_id, step`
)

func selectFiles(ctx context.Context, q postgres.Querier, account uuid.UUID) (files []File, err error) {
	if files, err = appendFiles(ctx, q, files, sqlUploadedFiles, account, func(scan func(...any) error) (f File, err error) {
		var (
			session  uuid.UUID
			position int
			name     string
		)

		err = scan(&f.Key, &f.Size, &session, &position, &name)
		f.Path = fmt.Sprintf("uploads/%s/%d-%s", session, position, component(name))

		return f, err
	}); err != nil {
		return nil, err
	}

	if files, err = appendFiles(ctx, q, files, sqlDataFiles, account, func(scan func(...any) error) (f File, err error) {
		var (
			namespace, dataset string
			id                 uuid.UUID
		)

		err = scan(&f.Key, &f.Size, &namespace, &dataset, &id)
		f.Path = fmt.Sprintf("datasets/%s/%s/%s.parquet", component(namespace), component(dataset), id)

		return f, err
	}); err != nil {
		return nil, err
	}

	number := 0

	return appendFiles(ctx, q, files, sqlRunFiles, account, func(scan func(...any) error) (f File, err error) {
		var (
			run  uuid.UUID
			step int
		)

		number++

		err = scan(&f.Key, &f.Size, &run, &step)
		f.Path = fmt.Sprintf("runs/%s/%d-%d", run, step, number)

		return f, err
	})
}

func appendFiles(ctx context.Context, q postgres.Querier, files []File, statement string, account uuid.UUID, scan func(func(...any) error) (File, error)) ([]File, error) {
	rows, err := q.Query(ctx, statement, account)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	for rows.Next() {
		one, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}

		files = append(files, one)
	}

	return files, rows.Err()
}
