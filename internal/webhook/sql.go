package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/postgres"
)

const sqlColumns = `w.account_id, w.id, w.token_id, w.url, w.types, w.scope_account, w.scope_space, w.scope_dataset, w.status, w.reason, w.secret_version, w.secret_check,
	w.old_until, w.failing_since, w.created_at, w.run_id, w.push_id, w.sealed FROM webhooks w`

const (
	sqlInsertWebhook = `
		WITH inverse AS (
			INSERT INTO directory_webhooks (log_id, account_id, webhook_id) SELECT unnest($16::uuid[]), $1, $2)
		INSERT INTO webhooks (account_id, id, token_id, url, types, scope_account, scope_space, scope_dataset, status, reason, secret_version, secret_check, created_at,
			run_id, push_id, sealed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '', $10, $11, $12, $13, $14, $15)`
	// $2 is a run, or nil for the webhooks of people.
	sqlCountWebhooks  = `SELECT count(*) FROM webhooks WHERE account_id = $1 AND run_id = $2`
	sqlSelectWebhook  = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2`
	sqlLockWebhook    = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlSelectWebhooks = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND run_id = $2 AND id > $3 ORDER BY id LIMIT $4`
	sqlUpdateWebhook  = `
		UPDATE webhooks SET token_id = $3, url = $4, types = $5, status = $6, reason = $7, secret_version = $8, secret_check = $9, old_until = $10, failing_since = $11
		WHERE account_id = $1 AND id = $2`
	sqlDeleteWebhook    = `DELETE FROM webhooks WHERE account_id = $1 AND id = $2`
	sqlDeleteInverse    = `DELETE FROM directory_webhooks WHERE account_id = $1 AND webhook_id = $2`
	sqlDeleteDeliveries = `DELETE FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2`
	sqlDeleteLanes      = `DELETE FROM webhook_lanes WHERE account_id = $1 AND webhook_id = $2`
	sqlFailWaiting      = `
		UPDATE webhook_deliveries SET state = 'failed', problem = $3 WHERE account_id = $1 AND webhook_id = $2 AND state = 'waiting'`
	sqlSelectDeliveries = `
		SELECT seq, log_id, event_id, type, state, attempts, status, problem, latency_ms, created_at, tried_at FROM webhook_deliveries
		WHERE account_id = $1 AND webhook_id = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4`
	// Whoever changes a webhook and its lanes locks the webhook first.
	sqlSelectListeners = `
		SELECT d.log_id, ` + sqlColumns + ` JOIN directory_webhooks d ON d.account_id = w.account_id AND d.webhook_id = w.id
		WHERE d.log_id = ANY($1) AND w.status = 'active' ORDER BY w.account_id, w.id FOR SHARE OF w`
	sqlInsertDelivery = `
		INSERT INTO webhook_deliveries (account_id, webhook_id, seq, log_id, subject_id, event_id, type, state, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', $8) ON CONFLICT DO NOTHING`
	sqlUpsertLane = `
		INSERT INTO webhook_lanes AS l (account_id, webhook_id, subject_id, next_at, version) VALUES ($1, $2, $3, now(), 1)
		ON CONFLICT (account_id, webhook_id, subject_id) DO UPDATE SET version = l.version + 1`
	sqlCleanDeliveries = `
		DELETE FROM webhook_deliveries WHERE ctid = ANY(ARRAY(SELECT ctid FROM webhook_deliveries WHERE created_at < $1 AND state <> 'waiting' ORDER BY created_at LIMIT $2))`
)

func insertWebhook(ctx context.Context, tx pgx.Tx, k Webhook, logs []uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlInsertWebhook, k.Account, k.ID, k.Token, k.URL, textsOf(k.Types), k.scopeAccount, k.scopeSpace, k.scopeDataset, k.Status, k.version, k.check,
		k.CreatedAt, k.run, k.pushID, k.sealed, logs)

	return err
}

func textsOf(types []event.Type) []string {
	list := make([]string, len(types))
	for i, one := range types {
		list[i] = string(one)
	}

	return list
}

func countWebhooks(ctx context.Context, tx pgx.Tx, account, run uuid.UUID) (count int, err error) {
	err = tx.QueryRow(ctx, sqlCountWebhooks, account, run).Scan(&count)

	return count, err
}

func scanWebhook(row pgx.CollectableRow) (k Webhook, err error) {
	err = row.Scan(fieldsOf(&k)...)

	return k, err
}

// fieldsOf returns where to scan the columns.
func fieldsOf(k *Webhook) []any {
	return []any{
		&k.Account, &k.ID, &k.Token, &k.URL, &k.Types, &k.scopeAccount, &k.scopeSpace, &k.scopeDataset, &k.Status, &k.Reason, &k.version, &k.check,
		moment{&k.OldUntil},
		moment{&k.FailingSince},
		&k.CreatedAt, &k.run, &k.pushID, &k.sealed,
	}
}

// moment scans a time that may be NULL.
type moment struct{ at *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(value any) error {
	if at, isTime := value.(time.Time); isTime {
		*m.at = at
	}

	return nil
}

func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}

	return &at
}

func selectWebhook(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Webhook, error) {
	rows, err := q.Query(ctx, sqlSelectWebhook, account, id)

	return first(rows, err)
}

func lockWebhook(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Webhook, error) {
	rows, err := tx.Query(ctx, sqlLockWebhook, account, id)

	return first(rows, err)
}

func first(rows pgx.Rows, err error) (*Webhook, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanWebhook)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectWebhooks(ctx context.Context, q postgres.Querier, account, run, after uuid.UUID, limit int) ([]Webhook, error) {
	rows, err := q.Query(ctx, sqlSelectWebhooks, account, run, after, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanWebhook)
}

func updateWebhook(ctx context.Context, tx pgx.Tx, k Webhook) error {
	_, err := tx.Exec(ctx, sqlUpdateWebhook, k.Account, k.ID, k.Token, k.URL, textsOf(k.Types), k.Status, k.Reason, k.version, k.check, optional(k.OldUntil), optional(k.FailingSince))

	return err
}

func deleteWebhook(ctx context.Context, tx pgx.Tx, k Webhook) error {
	for _, statement := range []string{sqlDeleteWebhook, sqlDeleteInverse, sqlDeleteDeliveries, sqlDeleteLanes} {
		if _, err := tx.Exec(ctx, statement, k.Account, k.ID); err != nil {
			return err
		}
	}

	return nil
}

// forgetWaiting ends what waits for a webhook that is no longer active.
func forgetWaiting(ctx context.Context, tx pgx.Tx, k Webhook) error {
	if _, err := tx.Exec(ctx, sqlFailWaiting, k.Account, k.ID, problemInactive); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlDeleteLanes, k.Account, k.ID)

	return err
}

func selectDeliveries(ctx context.Context, q postgres.Querier, account, id uuid.UUID, before int64, limit int) ([]Delivery, error) {
	rows, err := q.Query(ctx, sqlSelectDeliveries, account, id, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanDelivery)
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var latency int64

	err = row.Scan(&d.Seq, &d.log, &d.EventID, &d.Type, &d.State, &d.Attempts, &d.Status, &d.Problem, &latency, &d.CreatedAt, moment{&d.TriedAt})
	d.Latency = time.Duration(latency) * time.Millisecond

	return d, err
}

// listener is a webhook that gets the events of a log.
type listener struct {
	log uuid.UUID
	Webhook
}

func selectListeners(ctx context.Context, tx pgx.Tx, logs []uuid.UUID) ([]listener, error) {
	rows, err := tx.Query(ctx, sqlSelectListeners, logs)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l listener, err error) {
		err = row.Scan(append([]any{&l.log}, fieldsOf(&l.Webhook)...)...)

		return l, err
	})
}

// insertDeliveries adds events to the lanes of a webhook.
func insertDeliveries(ctx context.Context, tx pgx.Tx, wanted []addressed) error {
	batch := &pgx.Batch{}

	for _, one := range wanted {
		k, e := one.webhook, one.event
		batch.Queue(sqlInsertDelivery, k.Account, k.ID, e.Seq, e.Account, e.Subject.ID, e.ID, e.Type, e.At)
		batch.Queue(sqlUpsertLane, k.Account, k.ID, e.Subject.ID)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func cleanDeliveries(ctx context.Context, q postgres.Querier, before time.Time, limit int) (removed int64, err error) {
	tag, err := q.Exec(ctx, sqlCleanDeliveries, before, limit)

	return tag.RowsAffected(), err
}
