package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

// TestStoredOptionsAreNumbered checks that the migration numbers the options of stored runs, and changes nothing else in them.
func TestStoredOptionsAreNumbered(t *testing.T) {
	t.Parallel()

	url, old := schemaAt(t, 26)

	const nobody = "00000000-0000-0000-0000-000000000000"

	for i, result := range []any{
		`{"response":"Which?","clarification":{"question":"Which \"one\"?","options":["a","b \u003c c"]},"steps":[{"rows":[{"n": 1.50}]}]}`,
		`{"response":"Which?","clarification":{"question":"Which?","options":[]},"steps":[]}`,
		`{"response":"the \"clarification\":{","steps":[{"data":[{"clarification":{"question":1}}]}]}`,
		nil,
	} {
		_, err := old.ExecContext(t.Context(), `INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, created_at, deadline_at)
			VALUES ($1, gen_random_uuid(), $1, 'nl2ql', 'completed', '', '{}', '{}', '', $2, $3, now(), now())`, nobody, i, result)
		require.NoError(t, err)
	}

	for _, event := range [][2]string{{"answer", `{"response":"x","clarification":{"question":"w","options":["a"]}}`}, {"answer", `{"response":"x"}`}, {"step", `{"clarification":{"question":"w","options":["a"]}}`}} {
		_, err := old.ExecContext(t.Context(), `INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1::uuid, $1::uuid, count(*), $2, 0, $3, now() FROM run_events`,
			nobody, event[0], event[1])
		require.NoError(t, err)
	}

	require.NoError(t, old.Close())
	_, err := postgres.Migrate(t.Context(), url, notBusy)
	require.NoError(t, err)

	var results, events []string

	require.NoError(t, open(t, url).Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT (SELECT array_agg(coalesce(result, '') ORDER BY last_seq) FROM runs), (SELECT array_agg(body ORDER BY seq) FROM run_events)`).Scan(&results, &events)
	}))
	require.Equal(t, []string{
		`{"response":"Which?","clarification":{"question":"Which \"one\"?","options":[{"number":1,"interpretation":"a"},{"number":2,"interpretation":"b \u003c c"}]},"steps":[{"rows":[{"n": 1.50}]}]}`,
		`{"response":"Which?","clarification":{"question":"Which?","options":[]},"steps":[]}`,
		`{"response":"the \"clarification\":{","steps":[{"data":[{"clarification":{"question":1}}]}]}`,
		``,
	}, results)
	require.Equal(t, []string{
		`{"response":"x","clarification":{"question":"w","options":[{"number":1,"interpretation":"a"}]}}`, `{"response":"x"}`, `{"clarification":{"question":"w","options":["a"]}}`,
	}, events)
}
