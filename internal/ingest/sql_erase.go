package ingest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
)

const (
	sqlForgetRead = `
		UPDATE ingestions SET preview = NULL, warnings = '{}', doubts = '[]', error_message = CASE error_code WHEN '' THEN '' ELSE 'The reason was erased.' END
		WHERE account_id = $1 AND dataset_id = $2 AND status IN ('completed', 'failed', 'cancelled')`
	sqlForgetSketches = `UPDATE ingestion_files SET digest = NULL, sketch = NULL, document = NULL WHERE account_id = $1 AND dataset_id = $2`
	sqlForgetParts    = `
		UPDATE ingestion_files f SET part_found = NULL FROM ingestions i
		WHERE f.account_id = $1 AND f.dataset_id = $2 AND i.account_id = f.account_id AND i.dataset_id = f.dataset_id AND i.id = f.ingestion_id
			AND i.status IN ('completed', 'failed', 'cancelled')`
	sqlForgetAside = `
		DELETE FROM set_aside_rows s USING ingestions i
		WHERE s.account_id = $1 AND s.dataset_id = $2 AND i.account_id = s.account_id AND i.dataset_id = s.dataset_id AND i.id = s.ingestion_id
			AND i.status IN ('completed', 'failed', 'cancelled')`
)

// eraseRead deletes what ended ingestions keep of the values that they read.
func eraseRead(ctx context.Context, tx pgx.Tx, t lake.Table) error {
	for _, statement := range []string{sqlForgetRead, sqlForgetSketches, sqlForgetParts, sqlForgetAside, sqlForgetChunks, sqlForgetRecords, sqlForgetPages, sqlRemoveCorrections} {
		if _, err := tx.Exec(ctx, statement, t.Account, t.Dataset); err != nil {
			return err
		}
	}

	return nil
}
