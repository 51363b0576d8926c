package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/duckdb"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/sandbox"
	"quern.dev/quern/internal/upload"
)

// toTheMillisecond is the clock of what people see.
func toTheMillisecond() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Child is `quernd sandbox PROGRAM`: the process that reads people's bytes.
func Child(args []string) int {
	return sandbox.Main(args, map[string]sandbox.Program{duckdb.Name: duckdb.Program()})
}

func openSandbox(c config.Sandbox, log *slog.Logger) (*sandbox.Sandbox, error) {
	least, err := sandbox.ParseTier(c.Least)
	if err != nil {
		return nil, err
	}

	opened, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(c.Dir, "sandbox"), Least: least, Ready: c.Ready, Programs: []string{duckdb.Name}, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("the sandbox: %w", err)
	}

	return opened, nil
}

func (a *App) registerSandboxMetrics() {
	now := func(read func(sandbox.Stats) int64) func() float64 {
		return func() float64 { return float64(read(a.sandbox.Stats())) }
	}

	for name, of := range map[string]struct {
		help string
		read func(sandbox.Stats) int64
	}{
		"started_total": {"Processes that were started, those that wait included.", func(s sandbox.Stats) int64 { return s.Started }},
		"used_total":    {"Processes that got work.", func(s sandbox.Stats) int64 { return s.Used }},
		"killed_total":  {"Processes that died or were ended for a limit.", func(s sandbox.Stats) int64 { return s.Killed }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_sandbox_" + name, Help: of.help}, now(of.read)))
	}

	for name, of := range map[string]struct {
		help string
		read func(sandbox.Stats) int64
	}{
		"ready":   {"Processes that wait for work.", func(s sandbox.Stats) int64 { return s.Ready }},
		"running": {"Processes that work.", func(s sandbox.Stats) int64 { return s.Running }},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_sandbox_" + name, Help: of.help}, now(of.read)))
	}

	a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quern_sandbox_tier", Help: "How sealed they are.", ConstLabels: prometheus.Labels{"tier": a.sandbox.Tier().String()},
	}, func() float64 { return 1 }))
}

// openLake opens what both loading and querying stand on: the sealed children, the tables, and a folder for files on
// their way between the two.
func (a *App) openLake() (err error) {
	if a.sandbox, err = openSandbox(a.config.Sandbox, a.log); err != nil {
		return err
	}

	a.registerSandboxMetrics()

	a.passing = filepath.Join(a.sandbox.Dir(), "passing")
	if err := os.Mkdir(a.passing, 0o700); err != nil {
		return fmt.Errorf("the folder for files on their way: %w", err)
	}

	a.lake, err = lake.New(lake.Config{
		DB: a.db, Store: a.store, Now: time.Now, Log: a.log, Grace: a.config.Data.DeleteGrace, Quiet: a.config.Upkeep.Quiet,
		CacheDir: filepath.Join(a.config.Sandbox.Dir, "cache"), CacheBytes: int64(a.config.Cache.Bytes),
	})

	return err
}

// newIngest wires what loads files.
func (a *App) newIngest(uploads upload.Uploads) *ingest.Ingest {
	bounds := ingest.DefaultBounds()
	bounds.Columns, bounds.Unpacked = a.config.Ingest.MaxColumns, int64(a.config.Ingest.MaxUnpacked)

	return ingest.New(ingest.Config{
		DB: a.db, Store: a.store, Lake: a.lake, Catalog: a.catalog(), Uploads: uploads,
		Engine: engine.New(engine.Config{
			Sandbox: a.sandbox, Program: duckdb.Name, Log: a.log, Sessions: a.config.Sandbox.Max, Memory: int64(a.config.Ingest.Memory), Threads: a.config.Ingest.Threads,
			Disk: int64(a.config.Ingest.Disk),
		}),
		Jobs: func() *job.Client { return a.jobs }, Log: a.log, Now: toTheMillisecond, Dir: a.passing, Bounds: bounds,
		Time: a.config.Ingest.Time, MaxBody: int64(a.config.Ingest.MaxRows), Bodies: a.config.Ingest.PerUser, SnapshotAge: a.config.Data.SnapshotAge,
		Gone: a.forget,
		Upkeep: ingest.Upkeep{
			Every: a.config.Upkeep.Every, Time: a.config.Upkeep.Time,
			Engine: engine.New(engine.Config{
				Sandbox: a.sandbox, Program: duckdb.Name, Log: a.log, Sessions: max(a.config.Upkeep.Workers, 1), Memory: int64(a.config.Upkeep.Memory), Threads: 1,
				Disk: int64(a.config.Upkeep.Disk), Data: int64(a.config.Upkeep.Disk),
			}),
		},
	})
}

// forget lets go of what others made of a dataset that is gone. Runs are wired later than what loads files.
func (a *App) forget(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	return a.runs.ForgetTx(ctx, tx, t)
}
