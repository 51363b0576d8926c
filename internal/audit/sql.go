package audit

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsert = `
		INSERT INTO audit (account_id, at, id, actor_id, actor, token_id, address, request_id, action, kind, target, namespace, dataset, detail, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	sqlSelect = `
		SELECT account_id, at, id, actor_id, actor, token_id, address, request_id, action, kind, target, namespace, dataset, detail, outcome
		FROM audit WHERE account_id = $1 AND at <= $2 AND (at, id) < ($2, $3)
		ORDER BY at DESC, id DESC LIMIT $4`

	sqlMakePartition = `SELECT audit_partition($1)`
)

func insert(ctx context.Context, tx pgx.Tx, entries []Entry) error {
	batch := &pgx.Batch{}

	for _, e := range entries {
		batch.Queue(sqlInsert, e.Account, e.At, e.ID, optional(e.ActorID), e.Actor, optional(e.Token), e.Address, e.RequestID,
			e.Action, e.Target.Kind, e.Target.ID, e.Target.Namespace, e.Target.Dataset, e.Detail, e.Outcome)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func selectEntries(ctx context.Context, q postgres.Querier, account uuid.UUID, after Position, limit int) ([]Entry, error) {
	rows, err := q.Query(ctx, sqlSelect, account, after.At, after.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		var actor, token *uuid.UUID

		err = row.Scan(&e.Account, &e.At, &e.ID, &actor, &e.Actor, &token, &e.Address, &e.RequestID,
			&e.Action, &e.Target.Kind, &e.Target.ID, &e.Target.Namespace, &e.Target.Dataset, &e.Detail, &e.Outcome)

		if actor != nil {
			e.ActorID = *actor
		}

		if token != nil {
			e.Token = *token
		}

		return e, err
	})
}

func makePartition(ctx context.Context, tx pgx.Tx, month time.Time) error {
	_, err := tx.Exec(ctx, sqlMakePartition, month)

	return err
}

func optional(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}
