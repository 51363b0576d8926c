package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/sandbox"
	"quern.dev/quern/internal/source"
	"quern.dev/quern/internal/upload"
)

// toTheMillisecond is a clock for times that people see.
func toTheMillisecond() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func openSandbox(c config.Sandbox, full func() bool, log *slog.Logger) (*sandbox.Sandbox, error) {
	least, err := sandbox.ParseTier(c.MinIsolation)
	if err != nil {
		return nil, err
	}

	binary := c.Engine
	if binary == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}

		binary = filepath.Join(filepath.Dir(own), sandbox.Name)
	}

	opened, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(c.Dir, "sandbox"), MinIsolation: least, Idle: c.IdleProcesses, Binary: binary, Version: engine.Version(),
		Programs: []string{engine.DuckDB}, Log: log, Full: full,
	})

	switch {
	case errors.Is(err, sandbox.ErrBinary):
		return nil, fmt.Errorf("QUERN_SANDBOX_ENGINE: %w", err)
	case err != nil:
		return nil, fmt.Errorf("QUERN_SANDBOX_DIR or QUERN_SANDBOX_MIN_ISOLATION: %w", err)
	}

	return opened, nil
}

// engineFix is what to do if quern-engine cannot be used.
const engineFix = "install the quern-engine that was built together with this quernd in the same folder, or set QUERN_SANDBOX_ENGINE to its path"

func (a *App) registerSandboxMetrics() {
	now := func(read func(sandbox.Stats) int64) func() float64 {
		return func() float64 { return float64(read(a.sandbox.Stats())) }
	}

	for name, of := range map[string]struct {
		help string
		read func(sandbox.Stats) int64
	}{
		"started_total": {"Sealed processes started, including idle ones.", func(s sandbox.Stats) int64 { return s.Started }},
		"used_total":    {"Sealed processes that received work.", func(s sandbox.Stats) int64 { return s.Used }},
		"killed_total":  {"Sealed processes that crashed or were stopped at a limit.", func(s sandbox.Stats) int64 { return s.Killed }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_sandbox_" + name, Help: of.help}, now(of.read)))
	}

	for name, of := range map[string]struct {
		help string
		read func(sandbox.Stats) int64
	}{
		"idle":    {"Sealed processes that wait for work.", func(s sandbox.Stats) int64 { return s.Idle }},
		"running": {"Sealed processes that work.", func(s sandbox.Stats) int64 { return s.Running }},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_sandbox_" + name, Help: of.help}, now(of.read)))
	}

	a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quern_sandbox_tier", Help: "Isolation of sealed processes.", ConstLabels: prometheus.Labels{"tier": a.sandbox.Tier().String()},
	}, func() float64 { return 1 }))
}

// openLake opens what both loading and querying need: the tables, the sandbox, and a folder for files that pass between
// the two.
func (a *App) openLake() (err error) {
	if err := a.watchFolder(); err != nil {
		return err
	}

	a.lake, err = lake.New(lake.Config{
		DB: a.db, Store: a.store, Now: time.Now, Log: a.log, DeleteGrace: a.config.Data.DeleteGrace, Observe: a.observed.commit, QuietPeriod: a.config.Maintenance.QuietPeriod,
		CacheDir: filepath.Join(a.config.Sandbox.Dir, "cache"), CacheBytes: int64(a.config.Cache.MaxBytes), Folder: a.folder,
		Foreign: source.Files{Connections: a.connections, Credentials: a.credentials()}.Open,
	})
	if err != nil {
		return fmt.Errorf("QUERN_SANDBOX_DIR: %w", err)
	}

	a.folder.Evict(a.lake.Evict)

	_ = a.folder.Room(0) // evicts cached copies of an earlier process that would leave too little space to start

	if a.sandbox, err = openSandbox(a.config.Sandbox, func() bool { return a.folder.Room(0) != nil }, a.quiet); errors.Is(err, sandbox.ErrBinary) {
		return fmt.Errorf("%w; %s", err, engineFix)
	} else if err != nil {
		return err
	}

	a.registerSandboxMetrics()

	a.passing = filepath.Join(a.sandbox.Dir(), "passing")
	if err := os.Mkdir(a.passing, 0o700); err != nil {
		return fmt.Errorf("QUERN_SANDBOX_DIR: %w", err)
	}

	return nil
}

// newIngest wires the ingestion of files.
func (a *App) newIngest(uploads upload.Uploads, rows *query.Query) *ingest.Ingest {
	bounds := ingest.DefaultBounds()
	bounds.Columns, bounds.Unpacked = a.config.Ingest.MaxColumns, int64(a.config.Ingest.MaxUnpacked)

	return ingest.New(ingest.Config{
		DB: a.db, Store: a.store, Lake: a.lake, Catalog: a.catalog(), Uploads: uploads, Query: rows, Models: a.models,
		Engine: a.newEngine(engine.Config{
			Sessions: a.config.Sandbox.MaxProcesses, Memory: int64(a.config.Ingest.Memory), Threads: a.config.Ingest.Threads,
			Disk: int64(a.config.Ingest.Disk), Data: int64(a.config.Ingest.Disk),
		}),
		Jobs: func() *job.Client { return a.jobs }, Log: a.log, Now: toTheMillisecond, Dir: a.passing, Folder: a.folder, Bounds: bounds,
		Timeout: a.config.Ingest.Timeout, MaxBody: int64(a.config.Ingest.MaxBody), SpreadAbove: int64(a.config.Ingest.SpreadAbove), AtOnce: a.config.Ingest.Workers + largeAtOnce,
		MaxPerUser: a.config.Ingest.MaxPerUser, SnapshotRetention: a.config.Data.SnapshotRetention,
		Gone: a.forget, Observe: a.observed.load,
		Maintenance: ingest.Maintenance{
			Interval: a.config.Maintenance.Interval, Timeout: a.config.Maintenance.Timeout,
			Engine: a.newEngine(engine.Config{
				Sessions: max(a.config.Maintenance.Workers, 1), Memory: int64(a.config.Maintenance.Memory), Threads: 1,
				Disk: int64(a.config.Maintenance.Disk), Data: int64(a.config.Maintenance.Disk),
			}),
		},
	})
}

// forget removes a deleted dataset from the catalog, and what runs and long statements keep about it. It reads a.runs and a.query when it is called,
// because they are set after newIngest.
func (a *App) forget(ctx context.Context, tx postgres.Tx, t lake.Table) error {
	if err := a.catalog().ForgetDatasetTx(ctx, tx, t.Account, t.Dataset); err != nil {
		return err
	}

	if err := a.query.ForgetTx(ctx, tx, t); err != nil {
		return err
	}

	return a.runs.ForgetTx(ctx, tx, t)
}
