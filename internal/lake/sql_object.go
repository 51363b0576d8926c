package lake

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const sqlInsertObject = `
	INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, remove_at)
	SELECT $1, $2, $3, 'derived', 'writing', $4, $5
	WHERE NOT EXISTS (SELECT 1 FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NOT NULL)`

func insertObject(ctx context.Context, tx pgx.Tx, o Object, removeAt time.Time) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertObject, o.Table.Account, o.Table.Dataset, o.ID, o.Key, removeAt)

	return tag.RowsAffected() == 1, err
}

const sqlKeepObject = `
	UPDATE lake_files SET state = 'committed', size = $4, remove_at = NULL
	WHERE account_id = $1 AND dataset_id = $2 AND id = $3 AND state = 'writing'`

func keepObject(ctx context.Context, tx pgx.Tx, o Object) (done bool, err error) {
	tag, err := tx.Exec(ctx, sqlKeepObject, o.Table.Account, o.Table.Dataset, o.ID, o.Size)

	return tag.RowsAffected() == 1, err
}

const sqlDropObject = `
	UPDATE lake_files SET remove_at = $4 WHERE account_id = $1 AND dataset_id = $2 AND object_key = $3 AND kind = 'derived'`

func dropObject(ctx context.Context, tx pgx.Tx, t Table, key string, at time.Time) error {
	_, err := tx.Exec(ctx, sqlDropObject, t.Account, t.Dataset, key, at)

	return err
}
