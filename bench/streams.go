package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
)

const (
	fewStreams    = 10
	streamsOfARun = 5
	eventsASecond = 40 // of all runs together
	streamMemory  = 64 << 10
	streamLatency = 250 * time.Millisecond
	streamSettle  = 3 * time.Second
)

// runStreams measures many open streams on one replica, which works no question itself: what each takes of its memory,
// how long an event takes from the moment at which it is written until all that follow its run have it, and how many
// statements the replica needs for many streams, beside what it needs for few of the same runs.
func runStreams(ctx context.Context, b *bench) ([]result, error) {
	w, stop, err := b.startWatching(ctx, b.streams/streamsOfARun)
	if err != nil {
		return nil, err
	}
	defer stop()

	crowded, err := w.crowd(ctx, b.streams, b.steady/3)
	if err != nil {
		return nil, err
	}

	began := time.Now()
	following := newFollowers(ctx, w.service)

	if err := following.open(w.runs, b.streams); err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "streams: %d of %d runs opened in %v\n", b.streams, len(w.runs), time.Since(began).Round(time.Millisecond))

	spread, err := w.statementsDuring(ctx, b.steady/3)
	if err != nil {
		return nil, err
	}

	err = b.profileDuring(ctx, "streams", w.quernd, func(ctx context.Context, lasting time.Duration) error {
		_, err := w.statementsDuring(ctx, lasting)

		return err
	})
	if err := errors.Join(err, following.close()); err != nil {
		return nil, err
	}

	late, err := following.lateness(ctx)
	if err != nil {
		return nil, err
	}

	p99 := late.quantile(0.99)

	fmt.Fprintf(os.Stderr, "streams: statements a second: %.1f for %d streams of %d runs, %.1f for %d streams of these, %.1f for %d streams of %d runs\n",
		crowded.few, fewStreams, fewStreams, crowded.many, b.streams, spread, b.streams, len(w.runs))
	fmt.Fprintf(os.Stderr, "streams: %d events reached all after p50 %v, p95 %v, p99 %v, at most %v\n", len(late.took),
		late.quantile(0.5), late.quantile(0.95), p99, late.quantile(1))

	return []result{
		{
			name: "streams-memory", ours: kibibytes(crowded.each), bare: kibibytes(streamMemory), ratio: streamMemory / float64(max(crowded.each, 1)),
			enough: crowded.each <= streamMemory,
		},
		{
			name: "streams-latency", ours: milliseconds(float64(p99)), bare: streamLatency.String(), ratio: float64(streamLatency) / float64(p99),
			enough: p99 <= streamLatency,
		},
		{
			name: "streams-statements", ours: fmt.Sprintf("%.1f/s", crowded.many), bare: fmt.Sprintf("%.1f/s", crowded.few),
			ratio: crowded.few / crowded.many, goal: streamsLike,
		},
	}, nil
}

// crowded is what many streams of few runs take.
type crowded struct {
	few, many float64 // statements a second
	each      int64   // bytes of memory of each stream
}

// crowd lets first few and then many follow the same few runs.
func (w *watching) crowd(ctx context.Context, streams int, lasting time.Duration) (c crowded, err error) {
	runs := w.runs[:fewStreams]
	following := newFollowers(ctx, w.service)

	defer func() { err = errors.Join(err, following.close()) }()

	if err := following.open(runs, fewStreams); err != nil {
		return c, err
	}

	if c.few, err = w.statementsDuring(ctx, lasting); err != nil {
		return c, err
	}

	before, err := w.memory()
	if err != nil {
		return c, err
	}

	if err := following.open(runs, streams-fewStreams); err != nil {
		return c, err
	}

	if c.many, err = w.statementsDuring(ctx, lasting); err != nil {
		return c, err
	}

	after, err := w.memory()
	c.each = (after - before) / int64(streams-fewStreams)

	return c, err
}

// streamsLike: what the clock does not decide is noise.
const streamsLike = 0.9

func kibibytes(bytes int64) string { return fmt.Sprintf("%.1fKiB", float64(bytes)/(1<<10)) }

// watching is a replica that shows runs which another one works.
type watching struct {
	*service

	counted *statements
	runs    []watched
}

type watched struct {
	user string
	id   uuid.UUID
}

func (b *bench) startWatching(ctx context.Context, runs int) (w *watching, stop func(), err error) {
	var stops []func()

	stop = func() {
		for _, one := range slices.Backward(stops) {
			one()
		}
	}

	defer func() {
		if err != nil {
			stop()
		}
	}()

	// The one that shows the runs is not the one that works them.
	worker, stopWorker, err := b.startService(ctx, scripted, fmt.Sprintf("QUERN_RUN_WORKERS=%d", runs), "QUERN_SANDBOX_READY=4", "QUERN_QUERY_WAIT=1m", "QUERN_QUERY_QUEUE=1000")
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, stopWorker)

	if err := b.fillTable(ctx, worker, "sales", salesRows(querySmallRows), 1); err != nil {
		return nil, nil, err
	}

	users, err := worker.invite(ctx, runs)
	if err != nil {
		return nil, nil, err
	}

	counted, stopCounting, err := startStatements(ctx, worker.database)
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, stopCounting)

	replica, err := b.startReplica(ctx, worker.quernd, "QUERN_DATABASE_URL="+counted.address, "QUERN_RUN_WORKERS=0", "QUERN_JOB_WORKERS=0", "QUERN_INGEST_WORKERS=0", "QUERN_EXPORT_WORKERS=0", "QUERN_SANDBOX_READY=0")
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, replica.stop)

	shown := *worker
	shown.quernd = replica
	w = &watching{service: &shown, counted: counted}

	return w, stop, w.begin(ctx, users, b.steady)
}

// begin lets each of them ask a question that reads something and then says something again and again.
func (w *watching) begin(ctx context.Context, users []string, steady time.Duration) error {
	pause := time.Duration(len(users)) * time.Second / eventsASecond
	long := 2*steady + time.Duration(len(users))*time.Second/4 + time.Minute

	do := askScript()
	do.Pause = int(pause.Milliseconds())
	do.Steps = append(do.Steps, slices.Repeat([]scriptStep{{Instruction: "Think"}}, int(long/pause))...)

	began := time.Now()

	for _, user := range users {
		request, err := w.question(ctx, user, api.QuestionAgentNl2Ql, do)
		if err != nil {
			return err
		}

		request.Header.Set("Prefer", "respond-async")

		var made struct{ RunID uuid.UUID }

		body, err := get(request)
		if err == nil {
			err = json.Unmarshal(body, &made)
		}

		if err != nil {
			return err
		}

		w.runs = append(w.runs, watched{user, made.RunID})
		time.Sleep(pause / time.Duration(len(users))) // so that they do not all speak at once
	}

	for time.Since(began) < long/2 {
		var read int
		if err := w.scan(ctx, `SELECT count(*) FROM run_reads`, func(row pgx.CollectableRow) error { return row.Scan(&read) }); err != nil {
			return err
		}

		if read == len(users) {
			fmt.Fprintf(os.Stderr, "streams: %d runs have read something after %v\n", read, time.Since(began).Round(time.Millisecond))

			return nil
		}

		time.Sleep(100 * time.Millisecond)
	}

	return errors.New("the runs do not begin")
}

func (w *watching) memory() (int64, error) { return fieldOf(w.pid, "status", "VmRSS:") }

// statementsDuring counts what the replica executes in a second.
func (w *watching) statementsDuring(ctx context.Context, lasting time.Duration) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(streamSettle):
	}

	begin, before := time.Now(), w.counted.count.Load()

	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(lasting):
	}

	return float64(w.counted.count.Load()-before) / time.Since(begin).Seconds(), nil
}

// scan reads the rows of a statement past the service.
func (s *service) scan(ctx context.Context, statement string, each func(row pgx.CollectableRow) error) error {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}

	return rows.Err()
}
