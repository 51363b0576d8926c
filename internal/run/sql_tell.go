package run

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
)

const sqlSelectTold = `
	SELECT r.id, r.conversation_id, r.agent, r.status, r.error_code, r.caller, r.request FROM runs r WHERE r.account_id = $1 AND r.id = ANY($2) ORDER BY r.id`

// tellTx writes an event for each of the runs, which have just ended or begun to wait. Questions of benchmarks have none.
func tellTx(ctx context.Context, tx pgx.Tx, account uuid.UUID, runs []uuid.UUID, now time.Time) error {
	rows, err := tx.Query(ctx, sqlSelectTold, account, runs)
	if err != nil {
		return err
	}

	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*event.Event, error) {
		var (
			id, conversation uuid.UUID
			status           Status
			caller           auth.Principal
			asked            agent.Question
		)

		e := &event.Event{Account: account, At: now, Subject: event.Subject{Kind: event.KindRun, Account: account}}
		if err := row.Scan(&id, &conversation, &e.Data.Agent, &status, &e.Data.Code, &caller, &asked); err != nil || asked.By != "" {
			return nil, err
		}

		e.Type, e.Subject.ID, e.Token = eventOf(status), id, caller.Holder().Token
		e.Data.RunID, e.Data.ConversationID, e.Data.Username, e.Data.Namespace = &id, &conversation, asked.Username, asked.Namespace

		return e, nil
	})
	if err != nil {
		return err
	}

	var told []event.Event

	for _, e := range events {
		if e != nil {
			told = append(told, *e)
		}
	}

	return event.WriteTx(ctx, tx, told...)
}

func eventOf(status Status) event.Type {
	switch status {
	case Completed:
		return event.RunCompleted
	case Waiting:
		return event.RunWaiting
	case Cancelled:
		return event.RunCancelled
	default:
		return event.RunFailed
	}
}
