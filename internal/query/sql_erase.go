package query

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlEraseExports = `
		UPDATE exports SET state = 'dropped', expires_at = least(expires_at, CASE state WHEN 'running' THEN $4::timestamptz ELSE $3::timestamptz - interval '1 second' END)
		WHERE account_id = $1 AND dataset_id = $2`
	sqlHasExports    = `SELECT EXISTS (SELECT FROM exports WHERE account_id = $1 AND dataset_id = $2)`
	sqlSelectLongsOf = `SELECT account_id, id, status NOT IN ('queued', 'running') FROM statements WHERE account_id = $1 LIMIT $2`
)

// eraseExports drops the exports of a dataset. Their objects are due at a time that has passed, those that are being written later.
func eraseExports(ctx context.Context, q postgres.Querier, t lake.Table, due, dueWriting time.Time) error {
	_, err := q.Exec(ctx, sqlEraseExports, t.Account, t.Dataset, due, dueWriting)

	return err
}

func hasExports(ctx context.Context, q postgres.Querier, t lake.Table) (has bool, err error) {
	err = q.QueryRow(ctx, sqlHasExports, t.Account, t.Dataset).Scan(&has)

	return has, err
}

func selectLongsOf(ctx context.Context, q postgres.Querier, account uuid.UUID, limit int) ([]endedLong, error) {
	rows, err := q.Query(ctx, sqlSelectLongsOf, account, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEnded)
}
