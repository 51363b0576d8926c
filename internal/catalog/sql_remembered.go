package catalog

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlInsertRemembered = `
	INSERT INTO remembered (account_id, dataset_id, person_id, words, kind, said, column_name, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (account_id, dataset_id, person_id, words, kind) DO UPDATE SET said = excluded.said, column_name = excluded.column_name, at = excluded.at`

func insertRemembered(ctx context.Context, tx pgx.Tx, person uuid.UUID, d Dataset, one Remembered) error {
	_, err := tx.Exec(ctx, sqlInsertRemembered, d.Account, d.ID, person, one.Words, one.Kind, one.Said, one.Column, one.At)

	return err
}

const sqlDeleteRemembered = `
	DELETE FROM remembered WHERE account_id = $1 AND dataset_id = $2 AND person_id = $3 AND words = $4 AND kind = $5 AND column_name = $6`

func deleteRemembered(ctx context.Context, tx pgx.Tx, person uuid.UUID, d Dataset, one Remembered) error {
	_, err := tx.Exec(ctx, sqlDeleteRemembered, d.Account, d.ID, person, one.Words, one.Kind, one.Column)

	return err
}

const sqlDeleteAllRemembered = `DELETE FROM remembered WHERE account_id = $1 AND dataset_id = $2 AND person_id = $3`

func deleteAllRemembered(ctx context.Context, tx pgx.Tx, person uuid.UUID, d Dataset) error {
	_, err := tx.Exec(ctx, sqlDeleteAllRemembered, d.Account, d.ID, person)

	return err
}

const sqlSelectRemembered = `
	SELECT dataset_id, words, said, kind, column_name, at FROM remembered
	WHERE account_id = $1 AND dataset_id = ANY($2) AND person_id = $3 ORDER BY dataset_id, words, kind`

func selectRemembered(ctx context.Context, q postgres.Querier, person, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]Remembered, error) {
	rows, err := q.Query(ctx, sqlSelectRemembered, account, datasets, person)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID][]Remembered{}
		id    uuid.UUID
		one   Remembered
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &one.Words, &one.Said, &one.Kind, &one.Column, &one.At}, func() error {
		found[id] = append(found[id], one)

		return nil
	})

	return found, err
}

// A choice that applies to one form of question only has that form and a colon before its words. Such a choice is not proposed, because a
// synonym applies to all forms.
const sqlSelectProposals = `
	SELECT min(said), column_name, count(*) FROM remembered
	WHERE account_id = $1 AND dataset_id = $2 AND kind = 'column' AND words NOT LIKE '%: %'
	GROUP BY words, column_name ORDER BY count(*) DESC, words, column_name LIMIT $3`

func selectProposals(ctx context.Context, q postgres.Querier, d Dataset, limit int) ([]Proposal, error) {
	rows, err := q.Query(ctx, sqlSelectProposals, d.Account, d.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Proposal, err error) {
		err = row.Scan(&p.Said, &p.Column, &p.People)

		return p, err
	})
}
