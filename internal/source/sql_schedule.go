package source

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlUpdateSchedule = `
		UPDATE sources SET cron = $3, time_zone = $4, jitter_minutes = $5, slot_at = $6, next_at = $7 WHERE account_id = $1 AND id = $2`
	sqlUpdateNext = `UPDATE sources SET slot_at = $3, next_at = $4 WHERE account_id = $1 AND id = $2`
	sqlSelectDue  = `
		SELECT account_id, id FROM sources s WHERE next_at <= $1
			AND NOT EXISTS (SELECT FROM source_runs r WHERE r.account_id = s.account_id AND r.source_id = s.id AND r.finished_at IS NULL)
		ORDER BY next_at LIMIT $2`
)

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}

	return &t
}

func updateSchedule(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlUpdateSchedule, s.Account, s.ID, s.Schedule.Cron, s.Schedule.TimeZone, int(s.Schedule.Jitter/time.Minute), timeOrNull(s.next.slot), timeOrNull(s.next.at))

	return err
}

func updateNext(ctx context.Context, tx pgx.Tx, s Source) error {
	_, err := tx.Exec(ctx, sqlUpdateNext, s.Account, s.ID, timeOrNull(s.next.slot), timeOrNull(s.next.at))

	return err
}

// selectDue returns sources of all accounts whose slots have come and that have no run in progress.
func selectDue(ctx context.Context, q postgres.Querier, now time.Time, limit int) (found []RunArgs, err error) {
	rows, err := q.Query(ctx, sqlSelectDue, now, limit)
	if err != nil {
		return nil, err
	}

	var one RunArgs

	_, err = pgx.ForEachRow(rows, []any{&one.Account, &one.Source}, func() error {
		found = append(found, one)

		return nil
	})

	return found, err
}
