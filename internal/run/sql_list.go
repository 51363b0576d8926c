package run

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlListColumns = `id, conversation_id, agent, status, question, request, caller, created_at, finished_at`
	// Each statement reads an index in its order, and no further than the page needs.
	sqlSelectRecent = `
		SELECT ` + sqlListColumns + ` FROM runs WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
	sqlSelectRecentStatus = `
		SELECT ` + sqlListColumns + ` FROM runs WHERE account_id = $1 AND status = $4 AND id < $2 ORDER BY id DESC LIMIT $3`
	sqlSelectRecentTurns = `
		SELECT ` + sqlListColumns + ` FROM runs
		WHERE account_id = $1 AND conversation_id = $4 AND ($5 = '' OR status = $5) AND ($6::uuid IS NULL OR namespace_id = $6) AND id < $2
		ORDER BY id DESC LIMIT $3`
	// For each status, reads up to the limit in the order of the index; then takes the first of all statuses.
	sqlSelectRecentNamespace = `
		SELECT ` + sqlListColumns + ` FROM unnest($5::text[]) AS statuses (wanted)
		CROSS JOIN LATERAL (
			SELECT ` + sqlListColumns + ` FROM runs
			WHERE account_id = $1 AND namespace_id = $4 AND status = wanted AND id < $2 ORDER BY id DESC LIMIT $3) AS found
		ORDER BY id DESC LIMIT $3`
)

// selectRecent returns one run more than the limit if there are more.
func selectRecent(ctx context.Context, q postgres.Querier, account uuid.UUID, want Filter, namespace, after uuid.UUID) ([]Run, error) {
	statement, arguments := sqlSelectRecent, []any{account, after, want.Limit + 1}

	switch {
	case want.Conversation != uuid.Nil:
		statement, arguments = sqlSelectRecentTurns, append(arguments, want.Conversation, want.Status, uuid.NullUUID{UUID: namespace, Valid: namespace != uuid.Nil})
	case namespace != uuid.Nil:
		statuses := Statuses()
		if want.Status != "" {
			statuses = []Status{want.Status}
		}

		statement, arguments = sqlSelectRecentNamespace, append(arguments, namespace, statuses)
	case want.Status != "":
		statement, arguments = sqlSelectRecentStatus, append(arguments, want.Status)
	}

	rows, err := q.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Run, err error) {
		var (
			question string
			finished *time.Time
		)

		r.Account = account
		err = row.Scan(&r.ID, &r.Conversation, &r.Agent, &r.Status, &question, &r.Question, &r.caller, &r.CreatedAt, &finished)
		r.Question.Text = question

		if finished != nil {
			r.FinishedAt = *finished
		}

		return r, err
	})
}
