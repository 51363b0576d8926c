package lake

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlSelectAttached = `SELECT attached FROM lake_tables WHERE account_id = $1 AND dataset_id = $2`

// selectAttached returns nil for a table that is not attached.
func selectAttached(ctx context.Context, q postgres.Querier, t Table) (attached *Attachment, err error) {
	err = q.QueryRow(ctx, sqlSelectAttached, t.Account, t.Dataset).Scan(&attached)
	if postgres.NoRows(err) {
		err = nil
	}

	return attached, err
}

// foreignStaged is a file of an attached table that is going to be committed.
type foreignStaged struct {
	ForeignFile

	id        uuid.UUID
	key, name string
	entry     []byte
}

// insertForeign inserts the rows of files of an attached table. It uses COPY, because there can be many thousands.
func insertForeign(ctx context.Context, tx pgx.Tx, t Table, table uuid.UUID, files []foreignStaged) error {
	columns := []string{
		"account_id", "dataset_id", "id", "kind", "state", "object_key", "size", "row_count", "ingestion_id", "source_id", "source_name", "first_row", "skipped", "entry", "bounds", "address",
	}

	_, err := tx.CopyFrom(ctx, pgx.Identifier{"lake_files"}, columns, pgx.CopyFromSlice(len(files), func(n int) ([]any, error) {
		f := files[n]
		bounds, err := json.Marshal(f.bounds)

		return []any{
			t.Account, t.Dataset, f.id, "data", "ready", f.key, f.Size, f.Rows, attachingID(t), table, f.name, int64(1), []int64{}, f.entry, json.RawMessage(bounds), f.Address,
		}, err
	}))

	return err
}
