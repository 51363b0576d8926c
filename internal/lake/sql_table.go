package lake

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlInsertTable = `INSERT INTO lake_tables (account_id, dataset_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`

func insertTable(ctx context.Context, q postgres.Querier, t Table) error {
	_, err := q.Exec(ctx, sqlInsertTable, t.Account, t.Dataset)

	return err
}

// state is what a commit or a plan needs to know about a table.
type state struct {
	removed    bool
	location   string // address of Iceberg's metadata; empty before the first commit
	given      []Column
	last       int // highest id that was assigned to a column
	generation int64
	current    *entry
}

const sqlSelectState = `
	SELECT t.removed_at IS NOT NULL, coalesce(i.metadata_location, ''), t.given, t.last_column_id, t.generation,` +
	sqlSnapshotColumns + sqlFromTable + sqlWhereTable

// selectState returns nil if the table has no row yet.
func selectState(ctx context.Context, q postgres.Querier, t Table) (*state, error) {
	var (
		s  state
		id *uuid.UUID
		e  nullable
	)

	err := q.QueryRow(ctx, sqlSelectState, t.Account, t.Dataset).Scan(append(
		[]any{&s.removed, &s.location, &s.given, &s.last, &s.generation, &id}, e.targets()...)...)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	if id != nil {
		s.current = e.entry(*id)
		s.current.Current = true
	}

	return &s, err
}

const sqlLockTable = `SELECT dataset_id FROM lake_tables WHERE account_id = $1 AND dataset_id = $2 FOR UPDATE`

func lockTable(ctx context.Context, tx pgx.Tx, t Table) error {
	_, err := tx.Exec(ctx, sqlLockTable, t.Account, t.Dataset)

	return err
}

const sqlUpdateGiven = `UPDATE lake_tables SET given = $3::jsonb, last_column_id = $4 WHERE account_id = $1 AND dataset_id = $2`

func updateGiven(ctx context.Context, tx pgx.Tx, t Table, given []Column, last int) error {
	_, err := tx.Exec(ctx, sqlUpdateGiven, t.Account, t.Dataset, document{given}, last)

	return err
}

const (
	sqlMoveTable     = `UPDATE lake_tables SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveSchemas   = `UPDATE lake_schemas SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveSnapshots = `UPDATE lake_snapshots SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveUpkeep    = `UPDATE lake_upkeep SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveProfiles  = `UPDATE lake_profiles SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveFiles     = `UPDATE lake_files SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMoveParts     = `UPDATE lake_parts SET account_id = $3, dataset_id = $4 WHERE account_id = $1 AND dataset_id = $2`
	sqlMovePointer   = `
		UPDATE iceberg_tables SET table_namespace = $3, table_name = $4
		WHERE catalog_name = 'quern' AND table_namespace = $1 AND table_name = $2`
)

func moveTable(ctx context.Context, tx pgx.Tx, from, to Table) error {
	batch := &pgx.Batch{}

	for _, statement := range []string{sqlMoveTable, sqlMoveSchemas, sqlMoveSnapshots, sqlMoveFiles, sqlMoveUpkeep, sqlMoveProfiles, sqlMoveParts} {
		batch.Queue(statement, from.Account, from.Dataset, to.Account, to.Dataset)
	}

	batch.Queue(sqlMovePointer, from.Account.String(), from.Dataset.String(), to.Account.String(), to.Dataset.String())
	batch.Queue(sqlCommitNamespace, to.Account.String())
	batch.Queue(sqlDeleteJoins, from.Account, from.Dataset) // a join connects datasets of one account

	return tx.SendBatch(ctx, batch).Close()
}

const sqlAnyAddress = `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = 'quern' AND metadata_location IS NOT NULL LIMIT 1`

// AnyAddress returns the address of the metadata of any one table, or "" if there is no table.
func AnyAddress(ctx context.Context, q postgres.Querier) (address string, err error) {
	err = q.QueryRow(ctx, sqlAnyAddress).Scan(&address)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}

	return address, err
}
