package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
)

const (
	runsRate    = 15 // questions per second
	runsAskers  = 50
	runsKeepsUp = 0.97 // share of that rate, until the last answer: a backlog would take extra time at the end
)

// Runs measures whether questions, each a count in a sealed process, are answered as fast as they arrive, and the
// processor time of each. Clients that never pause show the maximum rate, beside as many clients that run the same
// statement without a question.
func Runs(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	q, stop, err := query.StartQueries(ctx, b, query.SmallRows, query.Ready, scripted, "QUERN_RUN_MAX_PER_USER=1000", "QUERN_QUERY_WAIT_TIMEOUT=30s") // a backlog is counted, not refused
	if err != nil {
		return nil, err
	}
	defer stop()

	users, err := invite(ctx, q.Service, runsAskers)
	if err != nil {
		return nil, err
	}

	if _, err := askAtRate(ctx, q, users, 2*time.Second); err != nil { // warm-up
		return nil, err
	}

	before, err := spentBy(ctx, q)
	if err != nil {
		return nil, err
	}

	answered, err := askAtRate(ctx, q, users, b.Steady)
	if err != nil {
		return nil, err
	}

	after, err := spentBy(ctx, q)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "runs: %d questions, %.2f/s, p50 %v, p95 %v; in the last quarter p50 %v; load %s\n", len(answered.Took), answered.PerSecond,
		answered.Quantile(0.5), answered.Quantile(0.95), answered.lastQuarter, load())
	fmt.Fprintf(os.Stderr, "runs: processor time of a question: %s\n", after.minus(before).each(len(answered.Took)))

	if err := most(ctx, q, b, users); err != nil {
		return nil, err
	}

	return []rig.Result{{
		Name: "runs", Ours: fmt.Sprintf("%.2f/s", answered.PerSecond), Bare: fmt.Sprintf("%d/s", runsRate), Ratio: answered.PerSecond / runsRate, Goal: runsKeepsUp,
	}}, nil
}

// most prints how many questions, and how many statements, clients that never pause get answered.
func most(ctx context.Context, q *query.Queries, b *rig.Bench, users []string) error {
	var asking, querying [query.Clients]query.Client

	for i := range query.Clients {
		asking[i] = func(ctx context.Context) error { return askOnce(ctx, q, http.DefaultClient, users[i]) }
		querying[i] = func(ctx context.Context) error {
			_, err := q.Run(ctx, askStatement)

			return err
		}
	}

	questions, err := query.Hammer(ctx, asking[:], b.Steady/3)
	if err != nil {
		return err
	}

	statements, err := query.Hammer(ctx, querying[:], b.Steady/3)
	fmt.Fprintf(os.Stderr, "runs: %d clients without a pause: %.2f questions a second, %.2f statements a second\n", query.Clients, questions, statements)

	return errors.Join(err, b.ProfileDuring(ctx, "runs", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		_, err := query.Hammer(ctx, asking[:], lasting)

		return err
	}))
}

func askOnce(ctx context.Context, q *query.Queries, client *http.Client, user string) error {
	request, err := question(ctx, q.Service, user, api.QuestionAgentNl2Ql, askScript())
	if err != nil {
		return err
	}

	return follow(client, request, func(int64) {})
}

// steadily is the result of questions at a constant rate.
type steadily struct {
	rig.Loaded

	lastQuarter time.Duration // median of the questions that were asked last
}

// askAtRate asks questions at a constant rate, whether or not the earlier ones are answered, and waits for the last
// answer. The resulting rate is that of the answers.
func askAtRate(ctx context.Context, q *query.Queries, users []string, lasting time.Duration) (s steadily, err error) {
	var (
		client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
		count  = int(lasting.Seconds() * runsRate)
		took   = make([]time.Duration, count)
		failed = make([]error, count)
		begin  = time.Now()
		asking sync.WaitGroup
	)
	defer client.CloseIdleConnections()

	for i := range count {
		due := begin.Add(time.Duration(i) * time.Second / runsRate)

		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(time.Until(due)):
		}

		asking.Go(func() {
			failed[i] = askOnce(ctx, q, client, users[i%len(users)])
			took[i] = time.Since(due)
		})
	}

	asking.Wait()

	answered := time.Since(begin)
	s.lastQuarter = rig.Sorted(slices.Clone(took[count*3/4:])).Quantile(0.5)
	s.Loaded = rig.Sorted(took)
	s.PerSecond = float64(count) / answered.Seconds()

	failures := slices.DeleteFunc(failed, func(err error) bool { return err == nil })

	return s, errors.Join(failures[:min(3, len(failures))]...)
}

// spent is the processor time of all participants.
type spent struct{ service, children, database, clients time.Duration }

func (s spent) minus(earlier spent) spent {
	return spent{s.service - earlier.service, s.children - earlier.children, s.database - earlier.database, s.clients - earlier.clients}
}

func (s spent) each(count int) string {
	of := func(total time.Duration) string { return rig.Milliseconds(float64(total) / float64(count)) }

	return fmt.Sprintf("quernd %s, sandboxes %s, postgres %s, and these clients %s", of(s.service), of(s.children), of(s.database), of(s.clients))
}

func spentBy(ctx context.Context, q *query.Queries) (s spent, err error) {
	own, ended, err := rig.ProcessorTimes(q.PID)
	if err != nil {
		return s, err
	}

	s.service, s.children = own, ended

	living, err := rig.Descendants(q.PID)
	if err != nil {
		return s, err
	}

	for _, child := range living {
		taken, _, err := rig.ProcessorTimes(child)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since; its time is too short to matter
		}

		if err != nil {
			return s, err
		}

		s.children += taken
	}

	// The backends of the service; the pool keeps them for the duration of a measure.
	err = q.Scan(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`, func(row pgx.CollectableRow) error {
		var pid int
		if err := row.Scan(&pid); err != nil {
			return err
		}

		taken, _, err := rig.ProcessorTimes(pid)
		s.database += taken

		return err
	})

	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return s, err
	}

	s.clients = time.Duration(self.Utime.Nano() + self.Stime.Nano())

	return s, err
}

// load returns the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}

	return string(text[:min(4, len(text))])
}
