package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

// The clock of leases is the database's alone: workers need not agree on the time.
const (
	sqlAcquire = `
		INSERT INTO leases AS l (account_id, work_id, lease_id, until, job, queue, args)
		VALUES ($1, $2, $3, now() + $4, $5, $6, $7)
		ON CONFLICT (account_id, work_id) DO UPDATE
			SET lease_id = excluded.lease_id, until = excluded.until, job = excluded.job, queue = excluded.queue, args = excluded.args,
				delivered_at = NULL
			WHERE l.until < now()`
	sqlRenew   = `UPDATE leases SET until = now() + $4 WHERE account_id = $1 AND work_id = $2 AND lease_id = $3`
	sqlRelease = `DELETE FROM leases WHERE account_id = $1 AND work_id = $2 AND lease_id = $3`
	sqlFence   = `SELECT work_id FROM leases WHERE account_id = $1 AND work_id = $2 AND lease_id = $3 FOR SHARE`

	// The new lease id is nobody's: the holder is fenced off, and whoever is delivered the work can acquire it,
	// because until has passed. Work that nobody takes is delivered again after a while.
	sqlTakeExpired = `
		UPDATE leases SET lease_id = $1, delivered_at = now() WHERE (account_id, work_id) IN (
			SELECT account_id, work_id FROM leases
			WHERE until < now() AND (delivered_at IS NULL OR delivered_at < now() - $2::interval)
			ORDER BY until LIMIT 100 FOR UPDATE SKIP LOCKED)
		RETURNING job, queue, args, work_id`

	// A worker that died after it got its job and before it had the lease left nothing but a job that runs for
	// ever: River cannot know, and does not rescue jobs that may take as long as they like. A duplicate is
	// harmless, so no worker has to say that it lives.
	sqlRescue = `
		UPDATE river_job r SET state = 'available', scheduled_at = now()
		WHERE r.state = 'running' AND r.attempted_at < now() - $1::interval
			AND NOT EXISTS (SELECT FROM leases l WHERE l.job = r.kind AND l.args = r.args)`
)

// acquire returns ErrLost if somebody else holds the lease.
func acquire(ctx context.Context, q postgres.Querier, l Lease, work Work, args []byte, lasting time.Duration) error {
	return held(ctx, q, sqlAcquire, l.account, l.work, l.id, lasting, work.Job.Kind(), work.Queue, args)
}

func renew(ctx context.Context, q postgres.Querier, l Lease, lasting time.Duration) error {
	return held(ctx, q, sqlRenew, l.account, l.work, l.id, lasting)
}

// release is content if the lease is somebody else's by now.
func release(ctx context.Context, q postgres.Querier, l Lease) error {
	_, err := q.Exec(ctx, sqlRelease, l.account, l.work, l.id)

	return err
}

func fence(ctx context.Context, tx pgx.Tx, l Lease) error {
	return held(ctx, tx, sqlFence, l.account, l.work, l.id)
}

// held runs a statement that meets one row while the lease is held.
func held(ctx context.Context, q postgres.Querier, statement string, args ...any) error {
	tag, err := q.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrLost
	}

	return err
}

func rescue(ctx context.Context, tx pgx.Tx, after time.Duration) error {
	_, err := tx.Exec(ctx, sqlRescue, after)

	return err
}

func takeExpired(ctx context.Context, tx pgx.Tx, nobody uuid.UUID, again time.Duration) ([]stored, error) {
	rows, err := tx.Query(ctx, sqlTakeExpired, nobody, again)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stored, err error) {
		err = row.Scan(&s.kind, &s.queue, &s.args, &s.id)

		return s, err
	})
}
