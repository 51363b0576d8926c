package run

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// cleanIn runs the cleanup with the clock advanced.
func (o *office) cleanIn(ahead time.Duration) {
	o.t.Helper()
	o.ahead.Store(int64(ahead))
	require.NoError(o.t, o.clean(o.t.Context(), job.Lease{}))
	o.ahead.Store(0)
}

// answered asks a question and waits for the end of its run.
func (o *office) answered(question string) Run {
	o.t.Helper()

	o.want.Question.Text = question
	run := o.ask()
	o.let <- 2
	o.let <- 0
	o.events(run.ID, 0)

	return run
}

func (o *office) exec(statement string, args ...any) {
	o.t.Helper()
	require.NoError(o.t, o.DB.Do(o.t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(o.t.Context(), statement, args...)

		return err
	}))
}

func (o *office) missing(runs ...Run) {
	o.t.Helper()

	for _, run := range runs {
		_, err := o.Get(o.t.Context(), o.who, run.ID)
		require.True(o.t, fault.Is(err, fault.NotFound))
		_, err = o.Follow(o.t.Context(), o.who, run.ID, 0)
		require.True(o.t, fault.Is(err, fault.NotFound))
	}
}

const day = 24 * time.Hour

// TestEventsAreFolded checks that events are dropped with their week, at the earliest seven days after its last run. The
// run still reports how it ended, also to streams.
func TestEventsAreFolded(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	require.NoError(t, Prepare(t.Context(), o.DB, time.Now()))

	run := o.answered("How many?")
	all := o.events(run.ID, 0)

	o.cleanIn(7 * day)
	require.Equal(t, all, o.events(run.ID, 0))

	o.cleanIn(15 * day)

	var left int

	require.NoError(t, o.DB.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT count(*) FROM run_events`).Scan(&left)
	}))
	require.Zero(t, left)

	last := int64(len(all))
	for _, after := range []int64{0, 2, last - 1} {
		require.Equal(t, all[last-1:], o.rest(run.ID, after))
	}

	found, err := o.Get(t.Context(), o.who, run.ID)
	require.NoError(t, err)
	require.Equal(t, "1 before", found.Result.Response)
}

// rest returns all events until the end; events in between may be missing.
func (o *office) rest(id uuid.UUID, after int64) (seen []string) {
	o.t.Helper()

	stream, err := o.Follow(o.t.Context(), o.who, id, after)
	require.NoError(o.t, err)
	defer stream.Close()

	for {
		events, err := stream.Next(o.t.Context())
		require.NoError(o.t, err)

		for _, e := range events {
			seen = append(seen, string(e.Kind)+" "+string(e.Body))

			if e.Ends() {
				return seen
			}
		}
	}
}

// TestRunsAreKept checks that a run is removed after its retention, and the conversation with its last run. A run in
// progress is not removed.
func TestRunsAreKept(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	o.Retention = day

	first := o.answered("How many in the north?")
	other := o.answered("How many ships?")
	o.want.Conversation = first.Conversation
	second := o.answered("And in the south?")

	o.exec(`UPDATE runs SET finished_at = finished_at - interval '2 hours' WHERE id = $1`, first.ID)
	o.cleanIn(day - time.Hour)
	o.missing(first)

	found, err := o.Conversation(t.Context(), o.who, first.Conversation)
	require.NoError(t, err)
	require.Len(t, found.Turns, 1)
	require.Equal(t, second.ID, found.Turns[0].ID)
	require.Equal(t, "And in the south?", found.Title, "the words of the first question are gone too")

	going := o.ask()

	o.cleanIn(day + time.Hour)
	o.missing(second, other)

	found, err = o.Conversation(t.Context(), o.who, first.Conversation)
	require.NoError(t, err)
	require.Equal(t, going.ID, found.Turns[0].ID)

	o.let <- 0
	o.events(going.ID, 0)
	o.cleanIn(day + time.Hour)

	for _, table := range []string{"conversations", "runs", "run_events", "run_reads", "run_objects", "run_feedback"} {
		var left int

		require.NoError(t, o.DB.Do(t.Context(), func(q postgres.Querier) error {
			return q.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&left)
		}))
		require.Zero(t, left, table)
	}
}

// TestKeptForEver checks that runs are kept for ever if no retention is set.
func TestKeptForEver(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	run := o.answered("How many?")

	o.cleanIn(10_000 * day)

	_, err := o.Get(t.Context(), o.who, run.ID)
	require.NoError(t, err)
}

// TestOldRunsAreFound checks that expired runs are found by an index, however many other runs there are.
func TestOldRunsAreFound(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	o.exec(`
		INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, created_at, deadline_at, finished_at)
		SELECT account, id, turn_of, '', 'completed', '', '{}', '{}', '', 1, began, due, ended
		FROM (SELECT gen_random_uuid() AS account, gen_random_uuid() AS id, gen_random_uuid() AS turn_of, now() AS began, now() AS due, now() - n * interval '1 minute' AS ended FROM generate_series(1, 20000) n) AS made`)
	o.exec(`ANALYZE runs`)

	var plan []string

	require.NoError(t, o.DB.Do(t.Context(), func(q postgres.Querier) error {
		rows, err := q.Query(t.Context(), `EXPLAIN `+sqlSelectOld, time.Now().Add(-10*day), cleanBatch)
		if err != nil {
			return err
		}

		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])

		return err
	}))
	require.Contains(t, plan[1], "Index Scan using runs_finished", plan)
}
