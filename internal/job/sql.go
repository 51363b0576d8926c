package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

// Leases use only the clock of the database, so the clocks of workers need not agree.
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

	// The new lease id belongs to no worker. The former holder can no longer write, and the worker that the job is
	// delivered to can acquire the lease, because until has passed. Work that no worker takes is delivered again
	// after a while.
	sqlTakeExpired = `
		UPDATE leases SET lease_id = $1, delivered_at = now() WHERE (account_id, work_id) IN (
			SELECT account_id, work_id FROM leases
			WHERE until < now() AND (delivered_at IS NULL OR delivered_at < now() - $2::interval)
			ORDER BY until LIMIT 100 FOR UPDATE SKIP LOCKED)
		RETURNING job, queue, args, work_id`

	// A worker that died after it received its job and before it had the lease leaves a job that runs for ever. River
	// cannot detect this, and it does not rescue jobs without a timeout. A second delivery is harmless, so workers
	// need not report that they are alive.
	sqlRescue = `
		UPDATE river_job r SET state = 'available', scheduled_at = now()
		WHERE r.state = 'running' AND r.attempted_at < now() - $1::interval
			AND NOT EXISTS (SELECT FROM leases l WHERE l.job = r.kind AND l.args = r.args)`

	sqlBacklogs = `SELECT queue, count(*), max(now() - scheduled_at) FROM river_job WHERE state = 'available' AND scheduled_at <= now() GROUP BY queue ORDER BY queue`

	sqlOwnsJobs = `SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('river_job')`
)

func ownsJobs(ctx context.Context, q postgres.Querier) (owns bool, err error) {
	err = q.QueryRow(ctx, sqlOwnsJobs).Scan(&owns)

	return owns, err
}

// acquire returns ErrLost if another worker holds the lease.
func acquire(ctx context.Context, q postgres.Querier, l Lease, work Work, args []byte, lasting time.Duration) error {
	return held(ctx, q, sqlAcquire, l.account, l.work, l.id, lasting, work.Job.Kind(), work.Queue, args)
}

func renew(ctx context.Context, q postgres.Querier, l Lease, lasting time.Duration) error {
	return held(ctx, q, sqlRenew, l.account, l.work, l.id, lasting)
}

// release does nothing if another worker has the lease now.
func release(ctx context.Context, q postgres.Querier, l Lease) error {
	_, err := q.Exec(ctx, sqlRelease, l.account, l.work, l.id)

	return err
}

func fence(ctx context.Context, tx pgx.Tx, l Lease) error {
	return held(ctx, tx, sqlFence, l.account, l.work, l.id)
}

// held runs a statement that affects one row while the lease is held. It returns ErrLost if no row was affected.
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
