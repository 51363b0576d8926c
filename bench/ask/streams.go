package ask

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
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
)

const (
	fewStreams    = 10
	streamsOfARun = 5
	eventsASecond = 40 // events per second of all runs together
	streamMemory  = 64 << 10
	streamLatency = 250 * time.Millisecond
	streamSettle  = 3 * time.Second
)

// Streams measures many open streams on one replica, which does not work on questions itself: how much memory each
// stream takes, how long an event takes from the time at which it is written until all followers of its run have
// received it, and how many statements the replica needs for many streams, beside what it needs for a few streams of
// the same runs.
func Streams(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	w, stop, err := startWatching(ctx, b, b.Streams/streamsOfARun)
	if err != nil {
		return nil, err
	}
	defer stop()

	crowded, err := w.crowd(ctx, b.Streams, b.Steady/3)
	if err != nil {
		return nil, err
	}

	began := time.Now()
	following := newFollowers(ctx, w.Service)

	if err := following.open(w.runs, b.Streams); err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "streams: %d of %d runs opened in %v\n", b.Streams, len(w.runs), time.Since(began).Round(time.Millisecond))

	spread, err := w.statementsDuring(ctx, b.Steady/3)
	if err != nil {
		return nil, err
	}

	err = b.ProfileDuring(ctx, "streams", w.Quernd, func(ctx context.Context, lasting time.Duration) error {
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

	p99 := late.Quantile(0.99)

	fmt.Fprintf(os.Stderr, "streams: statements a second: %.1f for %d streams of %d runs, %.1f for %d streams of these, %.1f for %d streams of %d runs\n",
		crowded.few, fewStreams, fewStreams, crowded.many, b.Streams, spread, b.Streams, len(w.runs))
	fmt.Fprintf(os.Stderr, "streams: %d events reached all after p50 %v, p95 %v, p99 %v, at most %v\n", len(late.Took),
		late.Quantile(0.5), late.Quantile(0.95), p99, late.Quantile(1))

	return []rig.Result{
		{
			Name: "streams-memory", Ours: rig.Kibibytes(crowded.each), Bare: rig.Kibibytes(streamMemory), Ratio: streamMemory / float64(max(crowded.each, 1)),
			Enough: crowded.each <= streamMemory,
		},
		{
			Name: "streams-latency", Ours: rig.Milliseconds(float64(p99)), Bare: streamLatency.String(), Ratio: float64(streamLatency) / float64(p99),
			Enough: p99 <= streamLatency,
		},
		{
			Name: "streams-statements", Ours: fmt.Sprintf("%.1f/s", crowded.many), Bare: fmt.Sprintf("%.1f/s", crowded.few),
			Ratio: crowded.few / crowded.many, Goal: streamsLike,
		},
	}, nil
}

// crowded is the cost of many streams of few runs.
type crowded struct {
	few, many float64 // statements per second
	each      int64   // memory of each stream, in bytes
}

// crowd makes first a few and then many streams follow the same few runs.
func (w *watching) crowd(ctx context.Context, streams int, lasting time.Duration) (c crowded, err error) {
	runs := w.runs[:fewStreams]
	following := newFollowers(ctx, w.Service)

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

// streamsLike is the goal for the ratio of statements; polling determines their number, and the rest is noise.
const streamsLike = 0.9

// watching is a replica that streams runs which another replica works on.
type watching struct {
	*rig.Service

	counted *statements
	runs    []watched
}

type watched struct {
	user string
	id   uuid.UUID
}

func startWatching(ctx context.Context, b *rig.Bench, runs int) (w *watching, stop func(), err error) {
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

	// The replica that streams the runs is not the one that works on them.
	worker, stopWorker, err := b.StartService(ctx, scripted, fmt.Sprintf("QUERN_RUN_WORKERS=%d", runs), "QUERN_SANDBOX_IDLE_PROCESSES=4", "QUERN_QUERY_WAIT_TIMEOUT=1m", "QUERN_QUERY_MAX_WAITING=1000")
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, stopWorker)

	if err := b.FillTable(ctx, worker, "sales", query.SalesRows(query.SmallRows), 1); err != nil {
		return nil, nil, err
	}

	users, err := invite(ctx, worker, runs)
	if err != nil {
		return nil, nil, err
	}

	counted, stopCounting, err := startStatements(ctx, worker.Database)
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, stopCounting)

	replica, err := b.StartReplica(ctx, worker.Quernd, "QUERN_DATABASE_URL="+counted.address, "QUERN_RUN_WORKERS=0", "QUERN_JOB_WORKERS=0", "QUERN_INGEST_WORKERS=0", "QUERN_EXPORT_WORKERS=0", "QUERN_SANDBOX_IDLE_PROCESSES=0")
	if err != nil {
		return nil, nil, err
	}

	stops = append(stops, replica.Stop)

	shown := *worker
	shown.Quernd = replica
	w = &watching{Service: &shown, counted: counted}

	return w, stop, w.begin(ctx, users, b.Steady)
}

// begin makes each user ask a question that reads rows once and then writes events continuously.
func (w *watching) begin(ctx context.Context, users []string, steady time.Duration) error {
	pause := time.Duration(len(users)) * time.Second / eventsASecond
	long := 2*steady + time.Duration(len(users))*time.Second/4 + time.Minute

	do := askScript()
	do.Pause = int(pause.Milliseconds())
	do.Steps = append(do.Steps, slices.Repeat([]scriptStep{{Instruction: "Think"}}, int(long/pause))...)

	began := time.Now()

	for _, user := range users {
		request, err := question(ctx, w.Service, user, api.QuestionAgentNl2Ql, do)
		if err != nil {
			return err
		}

		request.Header.Set("Prefer", "respond-async")

		var made struct{ RunID uuid.UUID }

		body, err := rig.Get(request)
		if err == nil {
			err = json.Unmarshal(body, &made)
		}

		if err != nil {
			return err
		}

		w.runs = append(w.runs, watched{user, made.RunID})
		time.Sleep(pause / time.Duration(len(users))) // so that they do not all write at once
	}

	for time.Since(began) < long/2 {
		var read int
		if err := w.Scan(ctx, `SELECT count(*) FROM run_reads`, func(row pgx.CollectableRow) error { return row.Scan(&read) }); err != nil {
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

func (w *watching) memory() (int64, error) { return rig.FieldOf(w.PID, "status", "VmRSS:") }

// statementsDuring returns the number of statements that the replica executes per second.
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
