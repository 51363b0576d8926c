package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertFirst = `
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) VALUES ($1, $2, 1, $3, 0, $4, $5)`
	sqlAppendEvent = `
		WITH next AS (
			UPDATE runs SET last_seq = last_seq + 1, began_at = coalesce(began_at, $6) WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $3, $4, $5, $6 FROM next
		RETURNING seq`
	// The end has its content in the row of the run.
	sqlEndRun = `
		WITH ended AS (
			UPDATE runs SET status = $3, last_seq = last_seq + 1, result = $4, error_code = $5, error_message = $6, finished_at = $7
			WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $8, 0, '{}', $7 FROM ended
		RETURNING seq`
	sqlSelectEvents = `
		SELECT seq, kind, step, body, at FROM run_events WHERE account_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq`
	sqlSelectSteps = `
		SELECT body FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind = 'step' ORDER BY step`
	sqlSelectStep = `
		SELECT body FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind = 'step' AND step = $3 ORDER BY seq LIMIT 1`
	// Runs without news cost one look at their row.
	sqlSelectNews = `
		SELECT w.account_id, w.run_id, e.seq, e.kind, e.step, e.body, e.at
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS w (account_id, run_id, after)
		JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id AND r.last_seq > w.after
		CROSS JOIN LATERAL (
			SELECT seq, kind, step, body, at FROM run_events n
			WHERE n.account_id = w.account_id AND n.run_id = w.run_id AND n.seq > w.after ORDER BY n.seq LIMIT 100) e
		ORDER BY w.account_id, w.run_id, e.seq`
)

func insertFirst(ctx context.Context, tx pgx.Tx, r Run, kind string, body json.RawMessage) error {
	_, err := tx.Exec(ctx, sqlInsertFirst, r.Account, r.ID, kind, string(body), r.CreatedAt)

	return err
}

// appendEvent returns the event with its number, or errEnded.
func appendEvent(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e agent.Event, now time.Time) (Event, error) {
	return numbered(e, now, tx.QueryRow(ctx, sqlAppendEvent, account, run, e.Kind, e.Index, string(e.Body), now))
}

// endRun returns the last event, or errEnded if the run has ended before.
func endRun(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e ending) (Event, error) {
	var result *string
	if e.result != nil {
		result = new(string(e.result))
	}

	return numbered(agent.Event{Kind: e.kind, Body: json.RawMessage("{}")}, e.at,
		tx.QueryRow(ctx, sqlEndRun, account, run, e.status, result, e.failure.Code, e.failure.Message, e.at, e.kind))
}

func numbered(e agent.Event, at time.Time, row pgx.Row) (Event, error) {
	made := Event{Event: e, At: at}

	err := row.Scan(&made.Seq)
	if postgres.NoRows(err) {
		err = errEnded
	}

	return made, err
}

func selectEvents(ctx context.Context, q postgres.Querier, account, run uuid.UUID, after int64) ([]Event, error) {
	rows, err := q.Query(ctx, sqlSelectEvents, account, run, after)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
		var body string

		err = row.Scan(&e.Seq, &e.Kind, &e.Index, &body, &e.At)
		e.Body = json.RawMessage(body)

		return e, err
	})
}

func selectSteps(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]json.RawMessage, error) {
	rows, err := q.Query(ctx, sqlSelectSteps, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (json.RawMessage, error) {
		var body string
		err := row.Scan(&body)

		return json.RawMessage(body), err
	})
}

// selectStep returns nil if there is none.
func selectStep(ctx context.Context, q postgres.Querier, account, run uuid.UUID, step int) (json.RawMessage, error) {
	rows, err := q.Query(ctx, sqlSelectStep, account, run, step)
	if err != nil {
		return nil, err
	}

	body, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	if postgres.NoRows(err) {
		return nil, nil
	}

	return json.RawMessage(body), err
}

func selectNews(ctx context.Context, q postgres.Querier, wanted map[topicKey]int64) (map[topicKey][]Event, error) {
	var (
		accounts, runs []uuid.UUID
		afters         []int64
	)

	for key, after := range wanted {
		accounts, runs, afters = append(accounts, key.account), append(runs, key.run), append(afters, after)
	}

	rows, err := q.Query(ctx, sqlSelectNews, accounts, runs, afters)
	if err != nil {
		return nil, err
	}

	var (
		found = map[topicKey][]Event{}
		key   topicKey
		e     Event
		body  string
	)

	_, err = pgx.ForEachRow(rows, []any{&key.account, &key.run, &e.Seq, &e.Kind, &e.Index, &body, &e.At}, func() error {
		e.Body = json.RawMessage(body)
		found[key] = append(found[key], e)

		return nil
	})

	return found, err
}
