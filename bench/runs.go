package main

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
)

const (
	runsRate    = 15 // a second
	runsAskers  = 50
	runsKeepsUp = 0.97 // of that rate until the last one has its answer: a backlog would take its time at the end
)

// runRuns measures whether questions, each a count in a sandbox, get their answers as fast as they come, and what each
// of them takes of the processors. Clients that never pause show how many there could be, beside as many that run the
// same statement without a question.
func runRuns(ctx context.Context, b *bench) ([]result, error) {
	q, stop, err := b.startQueries(ctx, querySmallRows, queryReady, scripted, "QUERN_RUN_PER_USER=1000", "QUERN_QUERY_WAIT=30s") // a backlog is counted, not refused
	if err != nil {
		return nil, err
	}
	defer stop()

	users, err := q.invite(ctx, runsAskers)
	if err != nil {
		return nil, err
	}

	if _, err := q.askAtRate(ctx, users, 2*time.Second); err != nil { // warms up
		return nil, err
	}

	before, err := q.spent(ctx)
	if err != nil {
		return nil, err
	}

	answered, err := q.askAtRate(ctx, users, b.steady)
	if err != nil {
		return nil, err
	}

	after, err := q.spent(ctx)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "runs: %d questions, %.2f/s, p50 %v, p95 %v; in the last quarter p50 %v; load %s\n", len(answered.took), answered.perSecond,
		answered.quantile(0.5), answered.quantile(0.95), answered.lastQuarter, load())
	fmt.Fprintf(os.Stderr, "runs: processor time of a question: %s\n", after.minus(before).each(len(answered.took)))

	if err := q.most(ctx, b, users); err != nil {
		return nil, err
	}

	return []result{{
		name: "runs", ours: fmt.Sprintf("%.2f/s", answered.perSecond), bare: fmt.Sprintf("%d/s", runsRate), ratio: answered.perSecond / runsRate, goal: runsKeepsUp,
	}}, nil
}

// most tells how many questions clients get answered that never pause, and how many statements.
func (q *queries) most(ctx context.Context, b *bench, users []string) error {
	var asking, querying [queryClients]client

	for i := range queryClients {
		asking[i] = func(ctx context.Context) error { return q.askOnce(ctx, http.DefaultClient, users[i]) }
		querying[i] = func(ctx context.Context) error {
			_, err := q.run(ctx, askStatement)

			return err
		}
	}

	questions, err := hammer(ctx, asking[:], b.steady/3)
	if err != nil {
		return err
	}

	statements, err := hammer(ctx, querying[:], b.steady/3)
	fmt.Fprintf(os.Stderr, "runs: %d clients without a pause: %.2f questions a second, %.2f statements a second\n", queryClients, questions, statements)

	return errors.Join(err, b.profileDuring(ctx, "runs", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		_, err := hammer(ctx, asking[:], lasting)

		return err
	}))
}

func (q *queries) askOnce(ctx context.Context, client *http.Client, user string) error {
	request, err := q.question(ctx, user, api.QuestionAgentNl2Ql, askScript())
	if err != nil {
		return err
	}

	return follow(client, request, func(int64) {})
}

// steadily is what came of questions at a constant rate.
type steadily struct {
	loaded

	lastQuarter time.Duration // the median of those that were asked last
}

// askAtRate asks one question after another, whether or not those before have their answers, and waits for the last
// one. The rate is that of the answers.
func (q *queries) askAtRate(ctx context.Context, users []string, lasting time.Duration) (s steadily, err error) {
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
			failed[i] = q.askOnce(ctx, client, users[i%len(users)])
			took[i] = time.Since(due)
		})
	}

	asking.Wait()

	answered := time.Since(begin)
	s.lastQuarter = sorted(slices.Clone(took[count*3/4:])).quantile(0.5)
	s.loaded = sorted(took)
	s.perSecond = float64(count) / answered.Seconds()

	failures := slices.DeleteFunc(failed, func(err error) bool { return err == nil })

	return s, errors.Join(failures[:min(3, len(failures))]...)
}

// spent is the processor time of everybody who takes part.
type spent struct{ service, children, database, clients time.Duration }

func (s spent) minus(earlier spent) spent {
	return spent{s.service - earlier.service, s.children - earlier.children, s.database - earlier.database, s.clients - earlier.clients}
}

func (s spent) each(count int) string {
	of := func(total time.Duration) string { return milliseconds(float64(total) / float64(count)) }

	return fmt.Sprintf("quernd %s, sandboxes %s, postgres %s, and these clients %s", of(s.service), of(s.children), of(s.database), of(s.clients))
}

func (q *queries) spent(ctx context.Context) (s spent, err error) {
	own, ended, err := processorTimes(q.pid)
	if err != nil {
		return s, err
	}

	s.service, s.children = own, ended

	living, err := descendants(q.pid)
	if err != nil {
		return s, err
	}

	for _, child := range living {
		taken, _, err := processorTimes(child)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since; so little does not matter
		}

		if err != nil {
			return s, err
		}

		s.children += taken
	}

	// Its backends; the pool keeps them as long as a measure lasts.
	err = q.scan(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`, func(row pgx.CollectableRow) error {
		var pid int
		if err := row.Scan(&pid); err != nil {
			return err
		}

		taken, _, err := processorTimes(pid)
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

// load is what the kernel says of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}

	return string(text[:min(4, len(text))])
}
