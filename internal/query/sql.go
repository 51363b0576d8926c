package query

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlExportColumns = `
		account_id, dataset_id, snapshot_id, format, id, object_key, state, error_code, error_message, created_at, expires_at FROM exports`
	sqlLockLiveExport = `SELECT ` + sqlExportColumns + `
		WHERE account_id = $1 AND dataset_id = $2 AND snapshot_id = $3 AND format = $4 AND state <> 'dropped' FOR UPDATE`
	sqlSelectExport = `SELECT ` + sqlExportColumns + ` WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
	sqlLockExport   = `SELECT ` + sqlExportColumns + ` WHERE account_id = $1 AND dataset_id = $2 AND id = $3 FOR UPDATE`
	sqlInsertExport = `
		INSERT INTO exports (account_id, dataset_id, snapshot_id, format, id, object_key, state, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (account_id, dataset_id, snapshot_id, format) WHERE state <> 'dropped' DO NOTHING`
	sqlDropExport = `
		UPDATE exports SET state = 'dropped', expires_at = least(expires_at, $4) WHERE account_id = $1 AND dataset_id = $2 AND id = $3`

	sqlStartExport = `
		UPDATE exports SET state = 'running', object_key = $4, expires_at = $5 WHERE account_id = $1 AND dataset_id = $2 AND id = $3`
	sqlReadyExport = `
		UPDATE exports SET state = 'ready', size = $4, expires_at = $5
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'running'`
	sqlFailExport = `
		UPDATE exports SET state = 'failed', error_code = $4, error_message = $5, expires_at = $6
		WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state IN ('queued', 'running')`

	sqlClaimExpired = `
		UPDATE exports SET state = 'dropped' WHERE (account_id, dataset_id, id) IN (
			SELECT account_id, dataset_id, id FROM exports WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account_id, dataset_id, id, object_key, size IS NULL`
	sqlDeleteExport = `DELETE FROM exports WHERE account_id = $1 AND dataset_id = $2 AND id = $3`

	sqlKnownExports = `SELECT object_key, '' FROM exports WHERE object_key = ANY($1)`
	sqlReadyExports = `SELECT object_key, size FROM exports WHERE state = 'ready' AND object_key > $1 ORDER BY object_key LIMIT $2`
)

// selectExport returns an export; nil if it does not exist.
func selectExport(ctx context.Context, q postgres.Querier, args ExportArgs) (*export, error) {
	return oneExport(ctx, q, sqlSelectExport, args.Account, args.Dataset, args.Export)
}

func lockExport(ctx context.Context, tx pgx.Tx, e export) (*export, error) {
	return oneExport(ctx, tx, sqlLockExport, e.account, e.dataset, e.id)
}

// lockLiveExport returns and locks the export of a snapshot and a format that is not dropped; nil if it does not exist.
func lockLiveExport(ctx context.Context, tx pgx.Tx, t lake.Table, snapshot uuid.UUID, format string) (*export, error) {
	return oneExport(ctx, tx, sqlLockLiveExport, t.Account, t.Dataset, snapshot, format)
}

func oneExport(ctx context.Context, q postgres.Querier, statement string, args ...any) (*export, error) {
	var (
		e             export
		code, message string
	)

	err := q.QueryRow(ctx, statement, args...).Scan(&e.account, &e.dataset, &e.snapshot, &e.format, &e.id, &e.key, &e.state, &code, &message,
		&e.createdAt, &e.expiresAt)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	if code != "" {
		e.failure = fault.New(fault.Code(code), message)
	}

	return &e, err
}

// insertExport inserts an export. It returns false if one that is not dropped exists for the snapshot and the format.
func insertExport(ctx context.Context, tx pgx.Tx, e export) (made bool, err error) {
	return met(ctx, tx, sqlInsertExport, e.account, e.dataset, e.snapshot, e.format, e.id, e.key, e.state, e.createdAt, e.expiresAt)
}

// dropExport marks an export as dropped, so that another one can be inserted for its snapshot and format.
func dropExport(ctx context.Context, tx pgx.Tx, e export, now time.Time) error {
	_, err := tx.Exec(ctx, sqlDropExport, e.account, e.dataset, e.id, now)

	return err
}

func startExport(ctx context.Context, tx pgx.Tx, e export) (bool, error) {
	return met(ctx, tx, sqlStartExport, e.account, e.dataset, e.id, e.key, e.expiresAt)
}

func readyExport(ctx context.Context, tx pgx.Tx, e export, size int64, until time.Time) (bool, error) {
	return met(ctx, tx, sqlReadyExport, e.account, e.dataset, e.id, size, until)
}

func failExport(ctx context.Context, tx pgx.Tx, e export, reason error, until time.Time) (bool, error) {
	f := fault.From(reason)

	return met(ctx, tx, sqlFailExport, e.account, e.dataset, e.id, f.Code, f.Message, until)
}

// met runs a statement and reports whether it changed a row. The statements change a row only in the expected state.
func met(ctx context.Context, tx pgx.Tx, statement string, args ...any) (bool, error) {
	tag, err := tx.Exec(ctx, statement, args...)

	return tag.RowsAffected() > 0, err
}

// removable is an export whose object may be removed.
type removable struct {
	account, dataset, id uuid.UUID
	key                  string
	incomplete           bool // the object may be an upload in parts that was never completed
}

// claimExpired marks exports that expired before the given time as dropped and returns them. From then on their files are
// not served.
func claimExpired(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]removable, error) {
	rows, err := q.Query(ctx, sqlClaimExpired, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r removable, err error) {
		err = row.Scan(&r.account, &r.dataset, &r.id, &r.key, &r.incomplete)

		return r, err
	})
}

func deleteExport(ctx context.Context, q postgres.Querier, r removable) error {
	_, err := q.Exec(ctx, sqlDeleteExport, r.account, r.dataset, r.id)

	return err
}

// storedExports returns the rows of all exports, to be compared with the store. A file may have been started several
// times, each time under its own key.
func storedExports(db *postgres.DB) blob.Rows {
	return blob.Rows{
		Prefix: exportPrefix,
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlKnownExports, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlReadyExports, after, limit)
		},
	}
}
