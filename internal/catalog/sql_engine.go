package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlUpdateEngine = `UPDATE datasets SET engine = $3 WHERE account_id = $1 AND id = $2 AND engine <> $3 AND deleted_at IS NULL`

	// Only the operator reads this list, over all accounts. It has its own index.
	sqlSelectOnTrino = `
		SELECT a.username, n.name, d.name FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
			JOIN accounts a ON a.id = d.account_id
		WHERE d.engine = 'trino' AND d.deleted_at IS NULL ORDER BY a.username, n.name, d.name`
)

// updateEngine reports whether the engine was another one.
func updateEngine(ctx context.Context, tx pgx.Tx, d Dataset, engine Engine) (bool, error) {
	return changed(ctx, tx, sqlUpdateEngine, d.Account, d.ID, engine)
}

func selectOnTrino(ctx context.Context, q postgres.Querier) ([]Path, error) {
	rows, err := q.Query(ctx, sqlSelectOnTrino)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Path, err error) {
		err = row.Scan(&p.Username, &p.Namespace, &p.Dataset)

		return p, err
	})
}
