package rig

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"quern.dev/quern/stack"
)

// The settings with which the service runs River.
const (
	pickupCooldown = 5 * time.Millisecond
	PickupPoll     = 100 * time.Millisecond
)

// BareRiver is a client that inserts jobs and works on them.
type BareRiver struct {
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

func StartBareRiver(ctx context.Context) (r *BareRiver, stop func(), err error) {
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

	r = &BareRiver{pool: pool, begun: make(chan time.Time)}

	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[bareArgs]) error {
		r.begun <- time.Now()

		return nil
	}))

	r.client, err = river.NewClient(quiet{riverpgxv5.New(pool)}, &river.Config{
		Logger: slog.New(slog.DiscardHandler), FetchCooldown: pickupCooldown, FetchPollInterval: PickupPoll, PollOnly: true,
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

// Wait inserts a job in a transaction, as the service does, and returns how long it took until the job began.
func (r *BareRiver) Wait(ctx context.Context) (time.Duration, error) {
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

// Prepare creates a table for the rows that a question writes.
func (r *BareRiver) Prepare(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, `CREATE TABLE asked (account_id uuid, id uuid, body jsonb NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (account_id, id))`)

	return err
}

// Ask writes the rows of a question, which are a conversation, a run, an event, an audit entry and a job, and waits for
// the job.
func (r *BareRiver) Ask(ctx context.Context, question []byte) (written, delivered time.Duration, err error) {
	begin := time.Now()

	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		for range 4 {
			_, err := tx.Exec(ctx, `INSERT INTO asked (account_id, id, body, at) VALUES ($1, $2, $3, now())`, uuid.Nil, uuid.Must(uuid.NewV7()), string(question))
			if err != nil {
				return err
			}
		}

		_, err := r.client.InsertTx(ctx, tx, bareArgs{}, nil)

		return err
	})
	if err != nil {
		return 0, 0, err
	}

	written = time.Since(begin)

	select {
	case begun := <-r.begun:
		return written, begun.Sub(begin) - written, nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}
