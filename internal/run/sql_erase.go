package run

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectRunsOf   = `SELECT account_id, id FROM runs WHERE account_id = $1 ORDER BY id LIMIT $2`
	sqlSelectErasable = `SELECT conversation_id, trace_id FROM runs WHERE account_id = $1 AND id = $2`
)

func selectRunsOf(ctx context.Context, q postgres.Querier, account uuid.UUID, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectRunsOf, account, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

// selectErasable returns nil if the run does not exist.
func selectErasable(ctx context.Context, q postgres.Querier, run Args) (*erasable, error) {
	var found erasable

	err := q.QueryRow(ctx, sqlSelectErasable, run.Account, run.Run).Scan(&found.Conversation, &found.Trace)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // there is none
	}

	return &found, err
}
