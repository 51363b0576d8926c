package run

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

const (
	// The columns in the order of scanRun.
	sqlTaskColumns = `
		account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, error_code, error_message,
		created_at, deadline_at, began_at, finished_at`
	sqlTaskTime = `coalesce(finished_at, began_at, created_at)`
	sqlIsTask   = `
		account_id = $1 AND agent = $2 AND status = wanted AND ` + sqlTaskTime + ` >= $4
		AND (status <> 'running' OR $5::boolean IS NULL OR $5 = (began_at IS NOT NULL))`
	// For each status, reads up to the limit in the order of the index; then takes the first of all statuses.
	sqlSelectTasks = `
		SELECT` + sqlTaskColumns + ` FROM unnest($3::text[]) AS statuses (wanted)
		CROSS JOIN LATERAL (
			SELECT` + sqlTaskColumns + ` FROM runs WHERE ` + sqlIsTask + ` AND (` + sqlTaskTime + `, id) < ($6, $7)
			ORDER BY ` + sqlTaskTime + ` DESC, id DESC LIMIT $8) AS tasks
		ORDER BY ` + sqlTaskTime + ` DESC, id DESC LIMIT $8`
	// Also in the order of the index, so that the index is not read further than the count needs.
	sqlCountTasks = `
		SELECT count(*) FROM (
			SELECT FROM unnest($3::text[]) AS statuses (wanted)
			CROSS JOIN LATERAL (
				SELECT FROM runs WHERE ` + sqlIsTask + ` ORDER BY ` + sqlTaskTime + ` DESC, id DESC LIMIT $6) AS tasks LIMIT $6) AS counted`

	sqlIsTurn = `
		account_id = $1 AND conversation_id = $6 AND agent = $2 AND status = ANY($3::text[]) AND ` + sqlTaskTime + ` >= $4
		AND (status <> 'running' OR $5::boolean IS NULL OR $5 = (began_at IS NOT NULL))`
	sqlSelectTasksOf = `
		SELECT` + sqlTaskColumns + ` FROM runs WHERE ` + sqlIsTurn + ` AND (` + sqlTaskTime + `, id) < ($7, $8)
		ORDER BY ` + sqlTaskTime + ` DESC, id DESC LIMIT $9`
	sqlCountTasksOf = `SELECT count(*) FROM runs WHERE ` + sqlIsTurn

	sqlSelectReadsOf = `
		SELECT run_id, dataset_account, dataset_id FROM run_reads WHERE account_id = $1 AND run_id = ANY($2)`
)

// selectTasks returns one run more than the limit if there are more, and the total number, counted up to maxCounted unless
// a conversation is given.
func selectTasks(ctx context.Context, q postgres.Querier, account uuid.UUID, want Listing) (found []Run, total int, err error) {
	after := want.After
	if after.ActiveAt.IsZero() {
		after = Position{ActiveAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ID: uuid.Max}
	}

	which := []any{account, want.Agent, want.Statuses, want.Since, want.Begun}
	count, list := sqlCountTasks, sqlSelectTasks
	counted := slices.Concat(which, []any{maxCounted})

	if want.Conversation != uuid.Nil {
		which = append(which, want.Conversation)
		count, list, counted = sqlCountTasksOf, sqlSelectTasksOf, which
	}

	if err := q.QueryRow(ctx, count, counted...).Scan(&total); err != nil {
		return nil, 0, err
	}

	rows, err := q.Query(ctx, list, slices.Concat(which, []any{after.ActiveAt, after.ID, want.Limit + 1})...)
	if err != nil {
		return nil, 0, err
	}

	found, err = pgx.CollectRows(rows, scanRun)

	return found, total, err
}

// selectReadsOf returns, for each dataset that was read, the runs that read it.
func selectReadsOf(ctx context.Context, q postgres.Querier, account uuid.UUID, runs []uuid.UUID) (map[auth.Target][]uuid.UUID, error) {
	rows, err := q.Query(ctx, sqlSelectReadsOf, account, runs)
	if err != nil {
		return nil, err
	}

	var (
		readers = map[auth.Target][]uuid.UUID{}
		run     uuid.UUID
		target  = auth.Target{Kind: "dataset"}
	)

	_, err = pgx.ForEachRow(rows, []any{&run, &target.Account, &target.ID}, func() error {
		readers[target] = append(readers[target], run)

		return nil
	})

	return readers, err
}
