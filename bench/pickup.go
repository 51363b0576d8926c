package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

// How the service runs River.
const (
	pickupCooldown = 5 * time.Millisecond
	pickupPoll     = 100 * time.Millisecond
)

// runPickup measures how long a job waits until a worker begins with it, as the API shows it, beside River
// alone. Both ask for jobs in the same interval, so that is most of it.
func runPickup(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, stop, err := startBareRiver(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.newDataset(ctx)
	if err != nil {
		return nil, err
	}

	const small = "id,page\n1,/\n2,/a\n"

	files, err := s.upload(ctx, ofFile(bytes.NewReader([]byte(small))), int64(len(small)))
	if err != nil {
		return nil, err
	}

	var ourTimes, bareTimes []time.Duration

	for i := range b.pickups + pickupWarm {
		time.Sleep(rand.N(pickupPoll)) // anywhere between two polls

		seen, err := data.load(ctx, files.id, api.NewIngestion{DryRun: new(true)}, 10*time.Millisecond, nil)
		if err != nil {
			return nil, err
		}

		time.Sleep(rand.N(pickupPoll))

		bareTime, err := bare.wait(ctx)
		if err != nil {
			return nil, err
		}

		if i >= pickupWarm {
			ourTimes, bareTimes = append(ourTimes, seen.StartedAt.Sub(seen.CreatedAt)), append(bareTimes, bareTime)
		}
	}

	slices.Sort(ourTimes)
	slices.Sort(bareTimes)

	fmt.Fprintf(os.Stderr, "pickup: %d jobs, ours at most %v, bare at most %v\n", b.pickups, ourTimes[len(ourTimes)-1], bareTimes[len(bareTimes)-1])

	at := func(name string, q float64) result {
		ours, bare := loaded{took: ourTimes}.quantile(q), loaded{took: bareTimes}.quantile(q)

		return result{name: name, ours: milliseconds(float64(ours)), bare: milliseconds(float64(bare)), ratio: float64(bare) / float64(ours)}
	}

	return []result{at("pickup-p50", 0.5), at("pickup-p95", 0.95)}, nil
}

const pickupWarm = 5

// bareRiver is a client that inserts jobs and works them.
type bareRiver struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	begun  chan time.Time
}

type bareArgs struct{}

func (bareArgs) Kind() string { return "bare" }

// quiet is River's driver without NOTIFY.
type quiet struct{ *riverpgxv5.Driver }

func (quiet) SupportsListener() bool     { return false }
func (quiet) SupportsListenNotify() bool { return false }

func startBareRiver(ctx context.Context) (r *bareRiver, stop func(), err error) {
	address, drop, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, nil, err
	}

	defer func() {
		if err != nil {
			drop()
		}
	}()

	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, nil, err
	}

	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, nil, err
	}

	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, nil, err
	}

	r = &bareRiver{pool: pool, begun: make(chan time.Time)}

	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[bareArgs]) error {
		r.begun <- time.Now()

		return nil
	}))

	r.client, err = river.NewClient(quiet{riverpgxv5.New(pool)}, &river.Config{
		Logger: slog.New(slog.DiscardHandler), FetchCooldown: pickupCooldown, FetchPollInterval: pickupPoll, PollOnly: true,
		JobTimeout: -1, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}, Workers: workers,
	})
	if err != nil {
		return nil, nil, err
	}

	if err := r.client.Start(ctx); err != nil {
		return nil, nil, err
	}

	return r, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()

		if err := r.client.StopAndCancel(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stopping River:", err)
		}

		pool.Close()
		drop()
	}, nil
}

// wait inserts a job in a transaction, as the service does, and returns how long it took until it began.
func (r *bareRiver) wait(ctx context.Context) (time.Duration, error) {
	begin := time.Now()

	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		_, err := r.client.InsertTx(ctx, tx, bareArgs{}, nil)

		return err
	})
	if err != nil {
		return 0, err
	}

	select {
	case begun := <-r.begun:
		return begun.Sub(begin), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
