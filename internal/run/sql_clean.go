package run

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlMakePartition = `SELECT run_events_partition($1)`
	sqlDropEvents    = `SELECT run_events_drop($1)`
	sqlClaimObjects  = `
		UPDATE run_objects SET state = 'removing' WHERE object_key IN (
			SELECT object_key FROM run_objects WHERE remove_at < $1 ORDER BY remove_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account_id, run_id, object_key`
	sqlDeleteObject = `DELETE FROM run_objects WHERE account_id = $1 AND run_id = $2 AND object_key = $3 AND state = 'removing'`
	sqlKnownObjects = `SELECT object_key, '' FROM run_objects WHERE object_key = ANY($1)`
	sqlKeptObjects  = `SELECT object_key, size FROM run_objects WHERE state = 'kept' AND object_key > $1 ORDER BY object_key LIMIT $2`

	sqlSelectOld = `SELECT account_id, conversation_id, id FROM runs WHERE finished_at < $1 ORDER BY finished_at LIMIT $2`

	sqlSelectReaders = `SELECT account_id, run_id FROM run_reads WHERE dataset_account = $1 AND dataset_id = $2 ORDER BY account_id, run_id LIMIT $3`
	sqlEraseEvents   = `DELETE FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind NOT IN ('runStarted', 'runCompleted', 'runCancelled', 'runFailed')`
	sqlEraseResult   = `
		UPDATE runs SET request = request - 'chosen', result = CASE WHEN result IS NOT NULL THEN $3 END, error_message = CASE status WHEN 'failed' THEN $4 ELSE error_message END
		WHERE account_id = $1 AND id = $2`
	sqlDeleteRead = `DELETE FROM run_reads WHERE account_id = $1 AND run_id = $2 AND dataset_id = $3`

	// Runs are always locked in the same order, and before the rows that depend on them, to prevent deadlocks.
	sqlLockRuns = `SELECT 1 FROM runs WHERE account_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE`
	// An object that is being written keeps its remove_at, which is later than the end of any write: if it were removed now,
	// the store could still receive it afterwards.
	sqlDropObjects  = `UPDATE run_objects SET remove_at = $3 WHERE account_id = $1 AND run_id = ANY($2) AND state <> 'writing'`
	sqlDeleteEvents = `DELETE FROM run_events WHERE account_id = $1 AND run_id = ANY($2)`
	sqlDeleteReads  = `DELETE FROM run_reads WHERE account_id = $1 AND run_id = ANY($2)`
	sqlDeleteRuns   = `DELETE FROM runs WHERE account_id = $1 AND id = ANY($2)`
)

func makePartition(ctx context.Context, tx pgx.Tx, week time.Time) error {
	_, err := tx.Exec(ctx, sqlMakePartition, week)

	return err
}

func dropEvents(ctx context.Context, tx pgx.Tx, before time.Time) error {
	_, err := tx.Exec(ctx, sqlDropEvents, before)

	return err
}

func claimObjects(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]removable, error) {
	rows, err := q.Query(ctx, sqlClaimObjects, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[removable])
}

func deleteObject(ctx context.Context, q postgres.Querier, o removable) error {
	_, err := q.Exec(ctx, sqlDeleteObject, o.Account, o.Run, o.Key)

	return err
}

// stored returns the rows of all objects of runs, to be compared with the store. An object may have been started several
// times, each time under its own key.
func stored(db *postgres.DB) blob.Rows {
	return blob.Rows{
		Prefix: objectPrefix,
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlKnownObjects, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlKeptObjects, after, limit)
		},
	}
}

func selectOld(ctx context.Context, q postgres.Querier, before time.Time, limit int) ([]turn, error) {
	rows, err := q.Query(ctx, sqlSelectOld, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[turn])
}

func selectReaders(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectReaders, account, dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

// eraseRun removes the data of a run. The question and the fact that it was answered remain.
func eraseRun(ctx context.Context, tx pgx.Tx, run Args, dataset uuid.UUID, withheld []byte, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlLockRuns, run.Account, []uuid.UUID{run.Run})
	batch.Queue(sqlDropObjects, run.Account, []uuid.UUID{run.Run}, now)
	batch.Queue(sqlEraseEvents, run.Account, run.Run)
	batch.Queue(sqlEraseResult, run.Account, run.Run, string(withheld), hiddenMessage)
	batch.Queue(sqlDeleteRead, run.Account, run.Run, dataset)

	return tx.SendBatch(ctx, batch).Close()
}

func deleteRuns(ctx context.Context, tx pgx.Tx, account uuid.UUID, runs []uuid.UUID, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlLockRuns, account, runs)
	batch.Queue(sqlDropObjects, account, runs, now)
	batch.Queue(sqlDropOpinions, account, runs, now)

	for _, statement := range []string{sqlDeleteEvents, sqlDeleteReads, sqlDeleteRuns} {
		batch.Queue(statement, account, runs)
	}

	return tx.SendBatch(ctx, batch).Close()
}
