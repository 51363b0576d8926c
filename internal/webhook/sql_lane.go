package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	// A webhook gets at most $3 lanes at a time, so that one slow receiver does not take all senders.
	sqlClaimLanes = `
		WITH due AS (
			SELECT account_id, webhook_id, subject_id, row_number() OVER (PARTITION BY webhook_id ORDER BY next_at) AS n FROM (
				SELECT account_id, webhook_id, subject_id, next_at FROM webhook_lanes
				WHERE next_at <= now() AND webhook_id <> ALL($4) ORDER BY next_at LIMIT 500) AS waits),
		picked AS (
			SELECT l.account_id, l.webhook_id, l.subject_id FROM webhook_lanes l JOIN due USING (account_id, webhook_id, subject_id)
			WHERE due.n <= $3 AND l.next_at <= now() ORDER BY l.next_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED)
		UPDATE webhook_lanes l SET claim = $1, next_at = now() + $5 * interval '1 millisecond' FROM picked
		WHERE l.account_id = picked.account_id AND l.webhook_id = picked.webhook_id AND l.subject_id = picked.subject_id
		RETURNING l.account_id, l.webhook_id, l.subject_id, l.version`
	sqlFenceLane = `
		UPDATE webhook_lanes SET next_at = now() + $5 * interval '1 millisecond' WHERE account_id = $1 AND webhook_id = $2 AND subject_id = $3 AND claim = $4
		RETURNING version`
	sqlPostponeLane = `
		UPDATE webhook_lanes SET next_at = now() + $5 * interval '1 millisecond', claim = NULL
		WHERE account_id = $1 AND webhook_id = $2 AND subject_id = $3 AND claim = $4`
	sqlEndLane = `
		DELETE FROM webhook_lanes WHERE account_id = $1 AND webhook_id = $2 AND subject_id = $3 AND claim = $4 AND version = $5`
	sqlSelectNext = `
		SELECT seq, log_id, event_id, type, state, attempts, status, problem, latency_ms, created_at, tried_at FROM webhook_deliveries
		WHERE account_id = $1 AND webhook_id = $2 AND subject_id = $3 AND state = 'waiting' ORDER BY seq LIMIT 1`
	sqlRecordDelivery = `
		UPDATE webhook_deliveries SET state = $4, attempts = $5, status = $6, problem = $7, latency_ms = $8, tried_at = now()
		WHERE account_id = $1 AND webhook_id = $2 AND seq = $3`
	sqlForgetDelivery = `DELETE FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2 AND seq = $3`
	sqlBeginFailing   = `
		UPDATE webhooks SET failing_since = coalesce(failing_since, now()) WHERE account_id = $1 AND id = $2 RETURNING failing_since < now() - $3 * interval '1 millisecond'`
	sqlEndFailing = `UPDATE webhooks SET failing_since = NULL WHERE account_id = $1 AND id = $2 AND failing_since IS NOT NULL`
)

// lane is what waits of one thing for one webhook, claimed by a sender.
type lane struct {
	account, webhook, subject uuid.UUID
	version                   int64
	claim                     uuid.UUID
}

func claimLanes(ctx context.Context, q postgres.Querier, claim uuid.UUID, most, each int, busy []uuid.UUID, lease time.Duration) ([]lane, error) {
	rows, err := q.Query(ctx, sqlClaimLanes, claim, most, each, busy, lease.Milliseconds())
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l lane, err error) {
		l.claim = claim
		err = row.Scan(&l.account, &l.webhook, &l.subject, &l.version)

		return l, err
	})
}

// fenceLane renews the claim. It returns errLost if another sender has the lane.
func fenceLane(ctx context.Context, tx pgx.Tx, l *lane, lease time.Duration) error {
	err := tx.QueryRow(ctx, sqlFenceLane, l.account, l.webhook, l.subject, l.claim, lease.Milliseconds()).Scan(&l.version)
	if postgres.NoRows(err) {
		return errLost
	}

	return err
}

// postponeLane gives the lane back until a pause is over.
func postponeLane(ctx context.Context, q postgres.Querier, l lane, pause time.Duration) error {
	_, err := q.Exec(ctx, sqlPostponeLane, l.account, l.webhook, l.subject, l.claim, pause.Milliseconds())

	return err
}

// endLane removes a lane in which nothing waits. It reports false if something was added meanwhile.
func endLane(ctx context.Context, q postgres.Querier, l lane) (bool, error) {
	tag, err := q.Exec(ctx, sqlEndLane, l.account, l.webhook, l.subject, l.claim, l.version)

	return tag.RowsAffected() > 0, err
}

// selectNext returns the first delivery of a lane that waits; nil if there is none.
func selectNext(ctx context.Context, q postgres.Querier, l lane) (*Delivery, error) {
	rows, err := q.Query(ctx, sqlSelectNext, l.account, l.webhook, l.subject)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func recordDelivery(ctx context.Context, tx pgx.Tx, l lane, d Delivery) error {
	_, err := tx.Exec(ctx, sqlRecordDelivery, l.account, l.webhook, d.Seq, d.State, d.Attempts, d.Status, d.Problem, d.Latency.Milliseconds())

	return err
}

func forgetDelivery(ctx context.Context, tx pgx.Tx, l lane, d Delivery) error {
	_, err := tx.Exec(ctx, sqlForgetDelivery, l.account, l.webhook, d.Seq)

	return err
}

// beginFailing notes that a webhook fails, and reports whether it has failed for too long.
func beginFailing(ctx context.Context, tx pgx.Tx, l lane, limit time.Duration) (tooLong bool, err error) {
	err = tx.QueryRow(ctx, sqlBeginFailing, l.account, l.webhook, limit.Milliseconds()).Scan(&tooLong)
	if postgres.NoRows(err) {
		return false, errLost // deleted
	}

	return tooLong, err
}

func endFailing(ctx context.Context, tx pgx.Tx, l lane) error {
	_, err := tx.Exec(ctx, sqlEndFailing, l.account, l.webhook)

	return err
}
