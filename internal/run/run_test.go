package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// telling is an agent that only writes events: as many as each number from let says. It ends after a 0.
type telling struct{ let chan int }

func (a telling) Answer(ctx context.Context, _ auth.Principal, _ agent.Question, log agent.Log) (agent.Result, error) {
	for step := 0; ; {
		select {
		case <-ctx.Done():
			return agent.Result{}, ctx.Err()
		case n := <-a.let:
			if n == 0 {
				return agent.Result{Response: fmt.Sprintf("%d before", len(log.Before())), Outcome: agent.Answer}, nil
			}

			for range n {
				body, _ := json.Marshal(map[string]int{"index": step})
				if err := log.Write(ctx, agent.Event{Kind: EventStepStarted, Index: step, Body: body}); err != nil {
					return agent.Result{}, err
				}

				step++
			}
		}
	}
}

// office is Runs with its own database, workers and a tail.
type office struct {
	*Runs

	t     *testing.T
	let   chan int
	who   auth.Principal
	want  Ask
	ahead atomic.Int64 // how far its clock is advanced
}

func newOffice(t *testing.T, lasting time.Duration) *office {
	t.Helper()

	o := &office{t: t, let: make(chan int), who: auth.Principal{Account: uuid.New(), Username: "ada"}}
	db := pgtest.New(t)
	names := catalog.Catalog{DB: db, Now: time.Now}

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error { return insertAccount(t.Context(), q, o.who) }))

	_, err := names.CreateNamespace(t.Context(), o.who, catalog.NewNamespace{Name: "shop"})
	require.NoError(t, err)

	var jobs *job.Client

	o.Runs = New(Config{
		DB: db, Catalog: names, Agents: map[string]agent.Agent{"telling": telling{o.let}}, Jobs: func() *job.Client { return jobs },
		Credentials: auth.Credentials{DB: db, Now: time.Now, GroupsMaxAge: time.Hour},
		Forget:      func(context.Context, postgres.Tx, uuid.UUID, []uuid.UUID) error { return nil },
		Log:         slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) }, Timeout: lasting, MaxPerUser: 3, PollInterval: 50 * time.Millisecond,
	})

	workers := river.NewWorkers()
	river.AddWorker(workers, &Worker{Runs: o.Runs})

	jobs, err = job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler), Workers: workers, Queues: map[string]int{Queue: 4}})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)

	go func() { ended <- jobs.Run(ctx) }()
	go func() { o.tail.run(ctx); ended <- nil }()

	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})

	o.want = Ask{Agent: "telling", Question: agent.Question{Username: "ada", Namespace: "shop", Text: "How many?"}}

	return o
}

func insertAccount(ctx context.Context, q postgres.Querier, who auth.Principal) error {
	_, err := q.Exec(ctx, `
		INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES ($1, 'person', $2, 'issuer', $2, '', '', '{}', now(), now())`, who.Account, who.Username)

	return err
}

func (o *office) ask() Run {
	o.t.Helper()

	made, err := o.Ask(o.t.Context(), o.who, o.want)
	require.NoError(o.t, err)

	return made
}

// events returns all events until the end.
func (o *office) events(id uuid.UUID, after int64) (seen []string) {
	o.t.Helper()

	stream, err := o.Follow(o.t.Context(), o.who, id, after)
	require.NoError(o.t, err)
	defer stream.Close()

	for next := after + 1; ; {
		events, err := stream.Next(o.t.Context())
		require.NoError(o.t, err)

		for _, e := range events {
			require.Equal(o.t, next, e.Seq)
			next++

			seen = append(seen, string(e.Kind)+" "+string(e.Body))

			if e.Ends() {
				return seen
			}
		}
	}
}

func TestRunIsItsLog(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	run := o.ask()
	require.Equal(t, Running, run.Status)

	o.let <- 3
	o.let <- 0

	began := fmt.Sprintf(`runStarted {"runId":"%s","conversationId":"%s"}`, run.ID, run.Conversation)
	all := []string{
		began, `stepStarted {"index":0}`, `stepStarted {"index":1}`, `stepStarted {"index":2}`,
		`runCompleted {"result":{"response":"1 before","steps":[],"outcome":"answer"}}`,
	}

	for after := range int64(len(all)) {
		require.Equal(t, all[after:], o.events(run.ID, after))
	}

	for _, after := range []int64{int64(len(all)), 1000} {
		over, err := o.Follow(t.Context(), o.who, run.ID, after)
		require.NoError(t, err)

		_, err = over.Next(t.Context())
		require.ErrorIs(t, err, io.EOF, "it has had the end")
		over.Close()
	}

	done, err := o.Get(t.Context(), o.who, run.ID)
	require.NoError(t, err)
	require.Equal(t, Completed, done.Status)
	require.Equal(t, "1 before", done.Result.Response)

	_, err = o.Get(t.Context(), auth.Principal{Account: uuid.New()}, run.ID)
	require.True(t, fault.Is(err, fault.NotFound))

	_, err = o.Cancel(t.Context(), o.who, run.ID)
	require.True(t, fault.Is(err, fault.InvalidState))
}

func TestCancelEndsTheWork(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	run := o.ask()
	o.let <- 1

	cancelled, err := o.Cancel(t.Context(), o.who, run.ID)
	require.NoError(t, err)
	require.Equal(t, Cancelled, cancelled.Status)

	again, err := o.Cancel(t.Context(), o.who, run.ID)
	require.NoError(t, err)
	require.Equal(t, cancelled, again)

	seen := o.events(run.ID, 0)
	require.Equal(t, "runCancelled {}", seen[len(seen)-1])

	// The agent has ended: nothing receives from let.
	require.Eventually(t, func() bool {
		select {
		case o.let <- 1:
			return false
		case <-time.After(200 * time.Millisecond):
			return true
		}
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, seen, o.events(run.ID, 0))
}

func TestDeadline(t *testing.T) {
	t.Parallel()

	o := newOffice(t, 300*time.Millisecond)
	run := o.ask()

	time.Sleep(400 * time.Millisecond)
	require.NoError(t, o.expire(t.Context(), job.Lease{}))

	seen := o.events(run.ID, 1)
	require.Len(t, seen, 1)
	require.Contains(t, seen[0], `runFailed {"code":"TIMEOUT"`)

	late, err := o.Get(t.Context(), o.who, run.ID)
	require.NoError(t, err)
	require.Equal(t, Expired, late.Status)
}

func TestConversationsTakeTurns(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	first := o.ask()

	o.want.Conversation = first.Conversation
	second := o.ask()
	require.Equal(t, first.Conversation, second.Conversation)

	o.want.Conversation = uuid.New()
	_, err := o.Ask(t.Context(), o.who, o.want)
	require.True(t, fault.Is(err, fault.NotFound))

	_, err = o.Catalog.CreateNamespace(t.Context(), o.who, catalog.NewNamespace{Name: "lab"})
	require.NoError(t, err)

	o.want.Conversation, o.want.Question.Namespace = first.Conversation, "lab"
	_, err = o.Ask(t.Context(), o.who, o.want)
	require.True(t, fault.Is(err, fault.ValidationFailed))

	o.want.Question.Namespace = "shop"
	third := o.ask()

	_, err = o.Ask(t.Context(), o.who, o.want)
	require.True(t, fault.Is(err, fault.RateLimited))

	found, err := o.Conversation(t.Context(), o.who, first.Conversation)
	require.NoError(t, err)
	require.Equal(t, "How many?", found.Title)
	require.Len(t, found.Turns, 3)
	require.Equal(t, []uuid.UUID{first.ID, second.ID, third.ID}, []uuid.UUID{found.Turns[0].ID, found.Turns[1].ID, found.Turns[2].ID}, "oldest first")

	require.NoError(t, o.DB.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `UPDATE runs SET status = 'cancelled'; UPDATE conversations SET turns = 200`)

		return err
	}))

	_, err = o.Ask(t.Context(), o.who, o.want)
	require.True(t, fault.Is(err, fault.Conflict))
}

// TestTooFarAhead checks that a reader with a cursor past the last event does not affect other readers.
func TestTooFarAhead(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	run := o.ask()

	ahead, err := o.Follow(t.Context(), o.who, run.ID, 1000)
	require.NoError(t, err)
	defer ahead.Close()

	o.let <- 1
	o.let <- 0

	require.Len(t, o.events(run.ID, 0), 3)

	seen, err := ahead.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, seen[0].Seq)
}
