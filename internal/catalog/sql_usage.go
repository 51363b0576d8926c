package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlSelectUsage = `
	SELECT coalesce(u.kind, l.kind), coalesce(u.amount, 0), l.amount
	FROM (SELECT kind, amount FROM usage WHERE account_id = $1 AND day = $2) u
	FULL JOIN (SELECT kind, amount FROM limits WHERE account_id = $1) l USING (kind)
	ORDER BY 1`

func selectUsage(ctx context.Context, q postgres.Querier, account uuid.UUID, day time.Time) ([]Used, error) {
	rows, err := q.Query(ctx, sqlSelectUsage, account, day)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Used])
}

const sqlAddUsage = `
	INSERT INTO usage AS u (account_id, day, kind, amount) VALUES ($1, $2, $3, greatest(0, $4))
	ON CONFLICT (account_id, day, kind) DO UPDATE SET amount = greatest(0, u.amount + $4)
	RETURNING amount, (SELECT amount FROM limits WHERE account_id = $1 AND kind = $3)`

func addUsage(ctx context.Context, tx pgx.Tx, account uuid.UUID, on Reservation, amount int64) (used Used, err error) {
	used.Kind = on.Kind
	err = tx.QueryRow(ctx, sqlAddUsage, account, on.Day, on.Kind, amount).Scan(&used.Amount, &used.Limit)

	return used, err
}
