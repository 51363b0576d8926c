package job

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/span"
)

// CleanupQueue is the queue of all cleanup jobs. It is separate from the queues that people wait for.
const CleanupQueue = "cleanup"

// Config configures a Client.
type Config struct {
	DB       *postgres.DB
	Log      *slog.Logger
	Queues   map[string]int // workers of each queue on this replica; if empty, this replica only inserts jobs
	Slow     []string       // queues that people do not wait for: this replica polls them only once a second
	Workers  *river.Workers
	Periodic []*river.PeriodicJob
	// Notify wakes workers by NOTIFY. It takes a lock on the whole database in the inserting transaction, so polling
	// is better for a busy service.
	Notify bool
	// Observe is called after each attempt at a job. nil means that nobody observes.
	Observe func(ctx context.Context, kind string, outcome Outcome, took time.Duration)
	Spans   *span.Spans // nil means that attempts have no spans
}

// Client inserts jobs and works on them.
type Client struct {
	db    *postgres.DB
	log   *slog.Logger
	river *river.Client[pgx.Tx]
	wakes wakes
	lost  atomic.Int64 // leases that were lost while their work ran
}

const (
	fetchCooldown = 5 * time.Millisecond
	fetchPoll     = 100 * time.Millisecond
	slowPoll      = time.Second
	maxAttempts   = 10
	stopTimeout   = 15 * time.Second
)

// StopTime is the longest time that Run takes to stop: half of it for jobs to finish, half of it for cancelled jobs
// to end.
const StopTime = 2 * stopTimeout

// recovering turns a panic of a worker into an error. River would log the text of the panic, which can contain the
// value of a cell.
func recovering(ctx context.Context, _ *rivertype.JobRow, work func(context.Context) error) (err error) {
	defer fault.Recover(&err)

	return work(ctx)
}

// New returns a Client. If the Config has queues, Run works on their jobs.
func New(c Config) (*Client, error) {
	log := Limited(c.Log)
	config := &river.Config{
		Logger: slog.New(calm{log.Handler()}), FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll,
		MaxAttempts: maxAttempts, Middleware: []rivertype.Middleware{river.WorkerMiddlewareFunc(recovering)},
		JobTimeout:        -1, // no timeout: the lease and the work itself limit the duration
		ReindexerSchedule: nightly{c.DB},
	}

	if c.Spans == nil {
		c.Spans = span.Off()
	}

	// Before recovering, so that a panic counts as an error.
	config.Middleware = slices.Insert(config.Middleware, 0, rivertype.Middleware(observing(c)))

	client := &Client{db: c.DB, log: log, wakes: make(wakes, wakesWaiting)}

	if len(c.Queues) > 0 {
		config.Queues = map[string]river.QueueConfig{}
		for name, workers := range c.Queues {
			queue := river.QueueConfig{MaxWorkers: workers}
			if slices.Contains(c.Slow, name) {
				queue.FetchPollInterval = slowPoll
			}

			config.Queues[name] = queue
		}

		config.Workers, config.PeriodicJobs = c.Workers, c.Periodic
	}

	var err error
	if c.Notify {
		client.river, err = river.NewClient(riverpgxv5.New(c.DB.Pool()), config)
	} else {
		client.river, err = river.NewClient(quiet{riverpgxv5.New(c.DB.Pool()), client.wakes}, config)
	}

	if err != nil {
		return nil, fmt.Errorf("preparing jobs: %w", err)
	}

	return client, nil
}

// InsertTx inserts a job in the transaction that makes it necessary.
func (c *Client) InsertTx(ctx context.Context, tx postgres.Tx, args river.JobArgs, opts *river.InsertOpts) error {
	_, err := c.river.InsertTx(ctx, tx, args, caused(ctx, opts))

	return err
}

// Run works on jobs until ctx ends. Then it waits up to StopTime for the running jobs.
func (c *Client) Run(ctx context.Context) error {
	if err := c.river.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting jobs: %w", err)
	}

	for {
		select {
		case <-ctx.Done():
			return c.stop(ctx)
		case <-time.After(sweepEvery):
		}

		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "expired leases could not be processed", "error", err)
		}
	}
}

func (c *Client) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()

	if err := c.river.Stop(ctx); err == nil {
		return nil
	}

	// Cancel jobs that did not end in time. Their leases expire, and another worker takes them over.
	hard, cancelHard := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelHard()

	return c.river.StopAndCancel(hard)
}

// SchemaVersion is the version of River's tables that this program needs.
const SchemaVersion = 8

// Migrated reports whether the tables of River have the version that this program needs.
func Migrated(ctx context.Context, db *postgres.DB) (bool, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool()), nil)
	if err != nil {
		return false, fmt.Errorf("preparing the jobs' tables: %w", err)
	}

	found, err := migrator.Validate(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("reading the jobs' tables: %w", err)
	}

	return found.OK, nil
}

// Migrate migrates the tables of River to the current version.
func Migrate(ctx context.Context, db *postgres.DB) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool()), nil)
	if err != nil {
		return fmt.Errorf("preparing the jobs' tables: %w", err)
	}

	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrating the jobs' tables: %w", err)
	}

	return nil
}
