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
	// The content of the last event is in the row of the run.
	sqlEndRun = `
		WITH ended AS (
			UPDATE runs SET status = $3, last_seq = last_seq + 1, result = $4, error_code = $5, error_message = $6, finished_at = $7
			WHERE account_id = $1 AND id = $2 AND status IN ('running', 'waiting') RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $8, 0, '{}', $7 FROM ended
		RETURNING seq`
	sqlSelectEvents = `
		SELECT seq, kind, step, body, at FROM run_events WHERE account_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq`
	sqlSelectSteps = `
		SELECT body FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind = 'step' ORDER BY step`
	sqlSelectStep = `
		SELECT body FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind = 'step' AND step = $3 ORDER BY seq LIMIT 1`
	// A run without new events costs one read of its row. The start by a worker is also returned, with the number 0.
	sqlSelectNews = `
		SELECT w.account_id, w.run_id, r.began_at, coalesce(e.seq, 0), coalesce(e.kind, ''), coalesce(e.step, 0), coalesce(e.body, ''), coalesce(e.at, r.began_at)
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::boolean[]) AS w (account_id, run_id, after, waits)
		JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id AND (r.last_seq > w.after OR w.waits AND r.began_at IS NOT NULL)
		LEFT JOIN LATERAL (
			SELECT seq, kind, step, body, at FROM run_events n
			WHERE n.account_id = w.account_id AND n.run_id = w.run_id AND n.seq > w.after ORDER BY n.seq LIMIT 100) e ON true
		ORDER BY w.account_id, w.run_id, e.seq`
)

func insertFirst(ctx context.Context, tx pgx.Tx, r Run, kind string, body json.RawMessage) error {
	_, err := tx.Exec(ctx, sqlInsertFirst, r.Account, r.ID, kind, string(body), r.CreatedAt)

	return err
}

// appendEvent appends an event to a log and returns it with its number, or returns errEnded.
func appendEvent(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e agent.Event, now time.Time) (Event, error) {
	return numbered(e, now, tx.QueryRow(ctx, sqlAppendEvent, account, run, e.Kind, e.Index, string(e.Body), now))
}

// endRun ends a run and returns its last event, or returns errEnded if the run has already ended.
func endRun(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e ending) (Event, error) {
	var result *string
	if e.result != nil {
		result = new(string(e.result))
	}

	last, err := numbered(agent.Event{Kind: e.kind, Body: json.RawMessage("{}")}, e.at,
		tx.QueryRow(ctx, sqlEndRun, account, run, e.status, result, e.failure.Code, e.failure.Message, e.at, e.kind))
	if err != nil {
		return Event{}, err
	}

	return last, tellTx(ctx, tx, account, []uuid.UUID{run}, e.at)
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

// selectStep returns the stored step; nil if it does not exist.
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

// news is what followers of a run have not received yet.
type news struct {
	began  time.Time // zero while the run waits for a worker
	events []Event
}

// seen is what followers of a run have received.
type seen struct {
	after int64 // number of the last event
	waits bool  // no worker had started the run yet
}

func selectNews(ctx context.Context, q postgres.Querier, wanted map[topicKey]seen) (map[topicKey]news, error) {
	var (
		accounts, runs []uuid.UUID
		afters         []int64
		waits          []bool
	)

	for key, known := range wanted {
		accounts, runs, afters, waits = append(accounts, key.account), append(runs, key.run), append(afters, known.after), append(waits, known.waits)
	}

	rows, err := q.Query(ctx, sqlSelectNews, accounts, runs, afters, waits)
	if err != nil {
		return nil, err
	}

	var (
		found = map[topicKey]news{}
		key   topicKey
		began *time.Time
		e     Event
		body  string
		at    *time.Time
	)

	_, err = pgx.ForEachRow(rows, []any{&key.account, &key.run, &began, &e.Seq, &e.Kind, &e.Index, &body, &at}, func() error {
		one := found[key]

		if began != nil {
			one.began = *began
		}

		if e.Seq > 0 {
			e.Body, e.At = json.RawMessage(body), *at
			one.events = append(one.events, e)
		}

		found[key] = one

		return nil
	})

	return found, err
}
