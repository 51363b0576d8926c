package erase

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlColumns = `id, kind, target, state, requested_at, finished_at, found, out_of_reach, account_id, dataset_id`

	sqlLockErasures = `SELECT pg_advisory_xact_lock(hashtextextended('erase ' || $1::text, 0))`
	sqlSelectOne    = `SELECT ` + sqlColumns + ` FROM erasures WHERE account_id = $1 AND id = $2`
	sqlSelectOpen   = `SELECT ` + sqlColumns + ` FROM erasures WHERE account_id = $1 AND kind = $2 AND dataset_id = $3 AND state <> 'done'`
	sqlByTarget     = `SELECT ` + sqlColumns + ` FROM erasures WHERE kind = $1 AND target = $2 ORDER BY requested_at DESC LIMIT 1`
	sqlInsert       = `
		INSERT INTO erasures (account_id, id, kind, dataset_id, target, state, found, requested_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlConclude = `
		UPDATE erasures SET state = $3, out_of_reach = $4, erased_at = $5::timestamptz, finished_at = CASE $3::text WHEN 'done' THEN $5::timestamptz END
		WHERE account_id = $1 AND id = $2 AND state = 'running'`
	sqlFinish = `
		UPDATE erasures SET state = 'done', target = $3, finished_at = $4 WHERE account_id = $1 AND id = $2 AND state = 'erased'`
	sqlSelectLast = `SELECT coalesce(max(erased_at), 'epoch') FROM erasures`

	// A draft has no dataset, but it can have ingestions: dry runs, and loads that were never decided.
	sqlSelectDatasets = `
		SELECT id FROM datasets WHERE account_id = $1 UNION SELECT dataset_id FROM lake_tables WHERE account_id = $1
		UNION SELECT id FROM dataset_drafts WHERE account_id = $1 UNION SELECT dataset_id FROM ingestions WHERE account_id = $1`
	sqlHideAccount    = `UPDATE accounts SET disabled_at = coalesce(disabled_at, $2) WHERE id = $1`
	sqlHideDatasets   = `UPDATE datasets SET deleted_at = $2, epoch = epoch + 1 WHERE account_id = $1 AND deleted_at IS NULL`
	sqlHideNamespaces = `UPDATE namespaces SET deleted_at = $2 WHERE account_id = $1 AND deleted_at IS NULL`

	sqlCountDatasets = `
		SELECT what, number FROM (VALUES
			('datasets', (SELECT count(*) FROM datasets WHERE account_id = $1 AND id = ANY($2))),
			('definitions', (SELECT count(*) FROM definitions WHERE account_id = $1 AND dataset_id = ANY($2))),
			('semantics', (SELECT count(*) FROM semantics WHERE account_id = $1 AND dataset_id = ANY($2))),
			('grants', (SELECT count(*) FROM grants WHERE account_id = $1 AND target_id = ANY($2))),
			('ingestions', (SELECT count(*) FROM ingestions WHERE account_id = $1 AND dataset_id = ANY($2))),
			('rows set aside', (SELECT count(*) FROM set_aside_rows WHERE account_id = $1 AND dataset_id = ANY($2))),
			('records of documents', (SELECT count(*) FROM document_records WHERE account_id = $1 AND dataset_id = ANY($2))),
			('corrections of documents', (SELECT count(*) FROM document_corrections WHERE account_id = $1 AND dataset_id = ANY($2))),
			('uploaded files', (SELECT count(*) FROM upload_files WHERE bound_account = $1 AND bound_dataset = ANY($2) AND removed_at IS NULL)),
			('snapshots', (SELECT count(*) FROM lake_snapshots WHERE account_id = $1 AND dataset_id = ANY($2))),
			('data files', (SELECT count(*) FROM lake_files WHERE account_id = $1 AND dataset_id = ANY($2) AND kind = 'data')),
			('metadata files', (SELECT count(*) FROM lake_files WHERE account_id = $1 AND dataset_id = ANY($2) AND kind = 'metadata')),
			('profiles and value indexes', (SELECT count(*) FROM lake_files WHERE account_id = $1 AND dataset_id = ANY($2) AND kind = 'derived')),
			('exports', (SELECT count(*) FROM exports WHERE account_id = $1 AND dataset_id = ANY($2))),
			('statements with results', (SELECT count(*) FROM statement_reads WHERE dataset_account = $1 AND dataset_id = ANY($2))),
			('runs', (SELECT count(*) FROM run_reads WHERE dataset_account = $1 AND dataset_id = ANY($2))),
			('verified questions', (SELECT count(*) FROM verified_questions v WHERE EXISTS (
				SELECT FROM unnest($2::uuid[]) id WHERE v.needs @> jsonb_build_array(jsonb_build_object('account', $1::uuid, 'id', id))))),
			('benchmarks', (SELECT count(DISTINCT benchmark_id) FROM benchmark_datasets WHERE dataset_account = $1 AND dataset_id = ANY($2)))
		) AS counted (what, number) WHERE number > 0`
	sqlHasOpenLoads = `
		SELECT EXISTS (SELECT FROM ingestions WHERE account_id = $1 AND dataset_id = $2 AND status IN ('queued', 'running', 'waiting'))`
	sqlCountHistory = `
		SELECT what, number FROM (VALUES
			('snapshots', (SELECT greatest(count(*) - 1, 0) FROM lake_snapshots WHERE account_id = $1 AND dataset_id = $2)),
			('rows set aside', (SELECT count(*) FROM set_aside_rows WHERE account_id = $1 AND dataset_id = $2)),
			('records of documents', (SELECT count(*) FROM document_records WHERE account_id = $1 AND dataset_id = $2)),
			('corrections of documents', (SELECT count(*) FROM document_corrections WHERE account_id = $1 AND dataset_id = $2)),
			('uploaded files', (SELECT count(*) FROM upload_files WHERE bound_account = $1 AND bound_dataset = $2 AND removed_at IS NULL)),
			('exports', (SELECT count(*) FROM exports WHERE account_id = $1 AND dataset_id = $2)),
			('statements with results', (SELECT count(*) FROM statement_reads WHERE dataset_account = $1 AND dataset_id = $2)),
			('runs', (SELECT count(*) FROM run_reads WHERE dataset_account = $1 AND dataset_id = $2)),
			('profiles and value indexes', (SELECT count(*) FROM lake_files WHERE account_id = $1 AND dataset_id = $2 AND kind = 'derived'))
		) AS counted (what, number) WHERE number > 0`
	sqlCountUser = `
		SELECT what, number FROM (VALUES
			('namespaces', (SELECT count(*) FROM namespaces WHERE account_id = $1)),
			('tokens', (SELECT count(*) FROM tokens WHERE account_id = $1)),
			('connections', (SELECT count(*) FROM connections WHERE account_id = $1)),
			('sources', (SELECT count(*) FROM sources WHERE account_id = $1)),
			('webhooks', (SELECT count(*) FROM webhooks WHERE account_id = $1)),
			('conversations', (SELECT count(*) FROM conversations WHERE account_id = $1)),
			('own runs', (SELECT count(*) FROM runs WHERE account_id = $1)),
			('own statements', (SELECT count(*) FROM statements WHERE account_id = $1)),
			('own uploads', (SELECT count(*) FROM upload_files WHERE account_id = $1 AND removed_at IS NULL)),
			('days of usage', (SELECT count(*) FROM usage WHERE account_id = $1)),
			('limits', (SELECT count(*) FROM limits WHERE account_id = $1)),
			('grants to the user', (SELECT count(*) FROM directory_grants WHERE subject_kind = 'account' AND subject_id = $1::uuid::text)),
			('connections shared with the user', (SELECT count(*) FROM directory_connections WHERE subject_kind = 'account' AND subject_id = $1::uuid::text))
		) AS counted (what, number) WHERE number > 0`
)

func scanReceipt(row pgx.CollectableRow) (r Receipt, err error) {
	err = row.Scan(&r.ID, &r.Kind, &r.Target, &r.State, &r.RequestedAt, &r.FinishedAt, &r.Erased, &r.OutOfReach, &r.account, &r.dataset)

	return r, err
}

// oneReceipt returns nil if there is none.
func oneReceipt(ctx context.Context, q postgres.Querier, statement string, args ...any) (*Receipt, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanReceipt)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectErasure(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (Receipt, error) {
	found, err := oneReceipt(ctx, q, sqlSelectOne, account, id)
	if err != nil || found == nil {
		return Receipt{}, err
	}

	return *found, nil
}

func selectOpen(ctx context.Context, tx pgx.Tx, account uuid.UUID, kind Kind, dataset uuid.UUID) (*Receipt, error) {
	return oneReceipt(ctx, tx, sqlSelectOpen, account, kind, dataset)
}

func selectByTarget(ctx context.Context, q postgres.Querier, kind Kind, target string) (*Receipt, error) {
	return oneReceipt(ctx, q, sqlByTarget, kind, target)
}

func lockErasures(ctx context.Context, tx pgx.Tx, account uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlLockErasures, account)

	return err
}

func insertErasure(ctx context.Context, tx pgx.Tx, r Receipt) error {
	_, err := tx.Exec(ctx, sqlInsert, r.account, r.ID, r.Kind, r.dataset, r.Target, r.State, r.Erased, r.RequestedAt)

	return err
}

func concludeErasure(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, state State, outOfReach []string, now time.Time) error {
	_, err := tx.Exec(ctx, sqlConclude, account, id, state, outOfReach, now)

	return err
}

func finishErasure(ctx context.Context, tx pgx.Tx, account, id uuid.UUID, target string, now time.Time) error {
	_, err := tx.Exec(ctx, sqlFinish, account, id, target, now)

	return err
}

func selectLast(ctx context.Context, q postgres.Querier) (at time.Time, err error) {
	err = q.QueryRow(ctx, sqlSelectLast).Scan(&at)

	return at, err
}

func selectDatasets(ctx context.Context, q postgres.Querier, account uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectDatasets, account)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// hideAccount makes the tokens of an account invalid, and its datasets invisible.
func hideAccount(ctx context.Context, tx pgx.Tx, account uuid.UUID, now time.Time) error {
	for _, statement := range []string{sqlHideAccount, sqlHideDatasets, sqlHideNamespaces} {
		if _, err := tx.Exec(ctx, statement, account, now); err != nil {
			return err
		}
	}

	return nil
}

func countDatasets(ctx context.Context, tx pgx.Tx, account uuid.UUID, datasets []uuid.UUID) (map[string]int64, error) {
	found := map[string]int64{}

	return found, count(ctx, tx, found, sqlCountDatasets, account, datasets)
}

func hasOpenLoads(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID) (open bool, err error) {
	err = tx.QueryRow(ctx, sqlHasOpenLoads, account, dataset).Scan(&open)

	return open, err
}

func countHistory(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID, found map[string]int64) error {
	return count(ctx, tx, found, sqlCountHistory, account, dataset)
}

func countUser(ctx context.Context, tx pgx.Tx, account uuid.UUID, found map[string]int64) error {
	return count(ctx, tx, found, sqlCountUser, account)
}

func count(ctx context.Context, tx pgx.Tx, found map[string]int64, statement string, args ...any) error {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return err
	}

	var (
		what   string
		number int64
	)

	_, err = pgx.ForEachRow(rows, []any{&what, &number}, func() error {
		found[what] = number

		return nil
	})

	return err
}
