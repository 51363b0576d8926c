package audit

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	sqlInsert = `
		INSERT INTO audit (account_id, at, id, actor_id, actor, token_id, address, request_id, action, target, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	sqlMakePartition = `SELECT audit_partition($1)`
)

func insert(ctx context.Context, tx pgx.Tx, e Entry) error {
	_, err := tx.Exec(ctx, sqlInsert, e.Account, e.At, uuid.Must(uuid.NewV7()), optional(e.ActorID), e.Actor, optional(e.Token),
		e.Address, e.RequestID, e.Action, e.Target, e.Outcome)

	return err
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
