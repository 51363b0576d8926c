package job

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Config is how jobs are run.
type Config struct {
	DB       *postgres.DB
	Log      *slog.Logger
	Queues   map[string]int // workers for each queue on this replica; none: this replica only inserts
	Workers  *river.Workers
	Periodic []*river.PeriodicJob
	// Notify wakes workers by NOTIFY. It takes a lock of the whole database in the transaction that
	// inserts, so a busy service is better off polling.
	Notify bool
}

// Client inserts and works jobs.
type Client struct {
	db    *postgres.DB
	log   *slog.Logger
	river *river.Client[pgx.Tx]
	wakes wakes
}

const (
	fetchCooldown = 5 * time.Millisecond
	fetchPoll     = 100 * time.Millisecond
	maxAttempts   = 10
	stopTimeout   = 15 * time.Second
)

// recovering makes a worker's panic an error. River would write the text of the panic to the log, and that can quote a
// cell.
func recovering(ctx context.Context, _ *rivertype.JobRow, work func(context.Context) error) (err error) {
	defer fault.Recover(&err)

	return work(ctx)
}

// New returns a Client. With queues it works when it is run.
func New(c Config) (*Client, error) {
	config := &river.Config{
		Logger: slog.New(calm{c.Log.Handler()}), FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll,
		MaxAttempts: maxAttempts, Middleware: []rivertype.Middleware{river.WorkerMiddlewareFunc(recovering)},
		JobTimeout: -1, // the lease and the work itself know how long it may take
	}

	client := &Client{db: c.DB, log: c.Log, wakes: make(wakes, wakesWaiting)}

	if len(c.Queues) > 0 {
		config.Queues = map[string]river.QueueConfig{}
		for name, workers := range c.Queues {
			config.Queues[name] = river.QueueConfig{MaxWorkers: workers}
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

// InsertTx adds a job to the transaction that makes it necessary.
func (c *Client) InsertTx(ctx context.Context, tx postgres.Tx, args river.JobArgs, opts *river.InsertOpts) error {
	_, err := c.river.InsertTx(ctx, tx, args, opts)

	return err
}

// Run works jobs until ctx ends, then lets those that run end, for a while.
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
			c.log.WarnContext(ctx, "leases could not be swept", "error", err)
		}
	}
}

func (c *Client) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()

	if err := c.river.Stop(ctx); err == nil {
		return nil
	}

	// What did not end in time is given up: its lease runs out and another takes it over.
	hard, cancelHard := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelHard()

	return c.river.StopAndCancel(hard)
}

// SchemaVersion is the version of River's tables that this program needs.
const SchemaVersion = 8

// Migrated tells whether River's own tables are what this program needs.
func Migrated(ctx context.Context, db *postgres.DB) (bool, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool()), nil)
	if err != nil {
		return false, fmt.Errorf("preparing the jobs' tables: %w", err)
	}

	found, err := migrator.Validate(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("looking at the jobs' tables: %w", err)
	}

	return found.OK, nil
}

// Migrate brings River's own tables up to date.
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
