package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	sqlLockPushes = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND run_id = ANY($2) ORDER BY id FOR UPDATE`
	// Push notifications that still wait are kept: their deliveries end them.
	sqlOldPushes = `
		SELECT ` + sqlColumns + ` WHERE run_id <> '00000000-0000-0000-0000-000000000000' AND created_at < $1
			AND NOT EXISTS (SELECT FROM webhook_lanes l WHERE l.account_id = w.account_id AND l.webhook_id = w.id)
		ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED`
)

func lockPushes(ctx context.Context, tx pgx.Tx, account uuid.UUID, runs []uuid.UUID) ([]Webhook, error) {
	rows, err := tx.Query(ctx, sqlLockPushes, account, runs)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanWebhook)
}

func lockOldPushes(ctx context.Context, tx pgx.Tx, before time.Time, limit int) ([]Webhook, error) {
	rows, err := tx.Query(ctx, sqlOldPushes, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanWebhook)
}

func deleteAll(ctx context.Context, tx pgx.Tx, list []Webhook) error {
	for _, k := range list {
		if err := deleteWebhook(ctx, tx, k); err != nil {
			return err
		}
	}

	return nil
}
