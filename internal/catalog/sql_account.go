package catalog

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlSelectAccountID = `SELECT account_id FROM directory_names WHERE username = $1`

// selectAccountID returns uuid.Nil for a username that no account has.
func selectAccountID(ctx context.Context, q postgres.Querier, username string) (id uuid.UUID, err error) {
	err = q.QueryRow(ctx, sqlSelectAccountID, username).Scan(&id)
	if postgres.NoRows(err) {
		return uuid.Nil, nil
	}

	return id, err
}

const sqlSelectUsernames = `SELECT account_id, username FROM directory_names WHERE account_id = ANY($1)`

func selectUsernames(ctx context.Context, q postgres.Querier, accounts []uuid.UUID) (map[uuid.UUID]string, error) {
	return namesByID(ctx, q, sqlSelectUsernames, accounts)
}

const sqlSelectTakenNames = `SELECT username FROM directory_names WHERE username = ANY($1)`

func selectTakenNames(ctx context.Context, q postgres.Querier, names []string) ([]string, error) {
	rows, err := q.Query(ctx, sqlSelectTakenNames, names)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}
