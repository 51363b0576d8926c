package event

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// TestPageOfLongLogs checks that a page of three long logs reads no more rows than it has of each log.
func TestPageOfLongLogs(t *testing.T) {
	t.Parallel()

	const (
		each  = 20_000
		limit = 200
	)

	db, logs := pgtest.New(t), []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `INSERT INTO events (account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
			SELECT l.id, i * 10 + n, gen_random_uuid(), 'dataset.loaded', 'dataset', l.id, gen_random_uuid(), l.id, gen_random_uuid(), '{}', now()
			FROM generate_series(1, $2::bigint) i, unnest($1::uuid[]) WITH ORDINALITY l(id, n)`, logs, each)
		if err != nil {
			return err
		}

		_, err = q.Exec(t.Context(), `ANALYZE events`)

		return err
	}))

	var (
		page []Event
		plan []string
	)

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) (err error) {
		if page, err = selectEvents(t.Context(), q, Range{Logs: logs, After: each / 2 * 10, Until: each * 20}, limit); err != nil {
			return err
		}

		rows, err := q.Query(t.Context(), `EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) `+sqlSelect, logs, each/2*10, each*20, limit)
		if err != nil {
			return err
		}

		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])

		return err
	}))

	require.Len(t, page, limit)
	require.Equal(t, logs[0], page[0].Account)
	require.EqualValues(t, each/2*10+1, page[0].Seq)

	for i, e := range page {
		require.Equal(t, logs[i%len(logs)], e.Account, "the page has the events of all logs in order")
	}

	read := regexp.MustCompile(`actual rows=(\d+)`)
	found := 0

	for _, line := range plan {
		if match := read.FindStringSubmatch(line); match != nil {
			count, err := strconv.Atoi(match[1])
			require.NoError(t, err)
			require.LessOrEqual(t, count, limit*len(logs), plan)

			found++
		}
	}

	require.NotZero(t, found, plan)
}
