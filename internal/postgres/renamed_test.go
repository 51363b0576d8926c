package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

// TestStoredNamesAreRenamed checks that the migration to one style of names renames the events and members of stored runs, and nothing else
// in them.
func TestStoredNamesAreRenamed(t *testing.T) {
	t.Parallel()

	url, old := schemaAt(t, 22)

	const nobody = "00000000-0000-0000-0000-000000000000"

	_, err := old.ExecContext(t.Context(), `INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, created_at, deadline_at)
		VALUES ($1, $1, $1, 'nl2ql', 'completed', '', '{}', '{}', '', 0, $2, now(), now())`,
		nobody, `{"response":"a \"reading\":","reading":"All.", "steps":[{"rows":[{"reading": 1.50}]}]}`)
	require.NoError(t, err)

	for _, event := range [][2]string{
		{"run-started", `{}`}, {"plan", `{"steps":["x"],"reading":"All."}`}, {"step", `{"rows":[{"reading":1}]}`}, {"run-completed", `{}`}, {"run-cancelled", `{}`}, {"error", `{}`},
	} {
		_, err = old.ExecContext(t.Context(), `INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1::uuid, $1::uuid, count(*), $2, 0, $3, now() FROM run_events`,
			nobody, event[0], event[1])
		require.NoError(t, err)
	}

	require.NoError(t, old.Close())
	_, err = postgres.Migrate(t.Context(), url, notBusy)
	require.NoError(t, err)

	var (
		result string
		events []string
	)

	require.NoError(t, open(t, url).Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT (SELECT result FROM runs), (SELECT array_agg(kind || ' ' || body ORDER BY seq) FROM run_events)`).Scan(&result, &events)
	}))
	require.Equal(t, []string{`{"response":"a \"reading\":","interpretation":"All.","steps":[{"rows":[{"reading": 1.50}]}]}`}, []string{result}, "byte by byte")
	require.Equal(t, []string{
		`runStarted {}`, `plan {"steps":["x"],"interpretation":"All."}`, `step {"rows":[{"reading":1}]}`, `runCompleted {}`, `runCancelled {}`, `runFailed {}`,
	}, events)
}
