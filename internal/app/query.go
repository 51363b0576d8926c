package app

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/span"
)

// newQuery wires the execution of statements.
func (a *App) newQuery() *query.Query {
	c := a.config.Query

	threads := c.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}

	running := c.MaxRunning
	if running == 0 {
		running = a.room(memoryLimit("/proc/self/cgroup", "/sys/fs/cgroup", "/proc/meminfo"))
	}

	a.log.Info("statements", "running", running, "threads", threads, "memory", int64(c.Memory))

	made := query.New(query.Config{
		DB: a.db, Catalog: a.catalog(), Lake: a.lake, Folder: a.folder, Log: a.log, Now: time.Now, Credentials: a.credentials(), Meter: a.meter, Cluster: a.cluster,
		Engine: a.newEngine(engine.Config{
			Sessions: running, Memory: int64(c.Memory), Threads: threads, Disk: int64(c.Disk),
			Data: math.MaxInt64,
		}),
		Timeout: c.Timeout, DefaultRows: int64(c.DefaultRows), MaxRows: int64(c.MaxRows), MaxBytes: int64(c.MaxBytes), CacheBytes: int64(a.config.Cache.MaxBytes),
		MaxRunning: running, MaxPerUser: c.MaxPerUser, MaxWaiting: c.MaxWaiting, WaitTimeout: c.WaitTimeout,
		Exports: a.newExports(threads),
		Longs: query.Longs{
			MaxPerUser: a.config.Statement.MaxPerUser, MaxBytes: int64(a.config.Statement.MaxBytes), Retention: a.config.Statement.Retention,
		},
	})
	a.registerQueryMetrics(made)
	a.folder.Evict(made.Evict)

	return made
}

// newEngine returns an engine with DuckDB and these limits.
func (a *App) newEngine(limits engine.Config) *engine.Engine {
	limits.Sandbox, limits.Program, limits.Log, limits.Folder = a.sandbox, engine.DuckDB, a.log, a.folder
	limits.Observe = func(ctx context.Context, what string) func(error) {
		_, begun := span.Start(ctx, "sealed process "+what)

		return func(err error) {
			_, isStatement := errors.AsType[*engine.StatementError](err)
			_, isFile := errors.AsType[*engine.FileError](err)

			if isStatement || isFile { // the process works as it should
				begun.Set(span.Text("error.type", "refused"))

				err = nil
			}

			begun.End(err)
		}
	}

	return engine.New(limits)
}

// newExports wires exports with an engine of their own, so that they use no slot of a statement.
func (a *App) newExports(threads int) query.Exports {
	c := a.config.Export

	return query.Exports{
		Store: a.store, Jobs: func() *job.Client { return a.jobs }, Dir: a.passing,
		Engine: a.newEngine(engine.Config{
			Sessions: c.Workers, Memory: int64(a.config.Query.Memory), Threads: threads,
			Disk: int64(c.Disk), Data: int64(c.Disk),
		}),
		StreamMaxBytes: int64(c.StreamMaxBytes), Timeout: c.Timeout, Retention: c.Retention,
	}
}

const (
	serverMemory = 512 << 20 // memory of the server itself, in bytes
	perProcessor = 4
)

// room returns how many statements can run at once so that, with all ingestions, exports and maintenance, they never
// use more than the given memory: a container that exceeds its limit is killed as a whole. Each sealed process counts
// with all the memory that it may map.
func (a *App) room(memory int64) int {
	ingestions := int64(a.config.Ingest.Workers)
	if ingestions > 0 {
		ingestions += largeAtOnce
	}

	left := memory - serverMemory - ingestions*engine.Mapped(int64(a.config.Ingest.Memory)) -
		int64(a.config.Maintenance.Workers)*engine.Mapped(int64(a.config.Maintenance.Memory))
	fits := left/engine.Mapped(int64(a.config.Query.Memory)) - int64(a.config.Export.Workers)

	return int(min(max(fits, 1), int64(perProcessor*runtime.NumCPU())))
}

// memoryLimit returns how much memory this process and its children may use, in bytes: the smallest limit of its
// control groups and the machine. The parameters are the paths of the kernel's files.
func memoryLimit(groups, mounted, machine string) int64 {
	limit := int64(math.MaxInt64)

	if text, err := os.ReadFile(machine); err == nil {
		if _, after, ok := bytes.Cut(text, []byte("MemTotal:")); ok {
			number, _, _ := strings.Cut(strings.TrimSpace(string(after)), " ")
			if kilobytes, err := strconv.ParseInt(number, 10, 64); err == nil {
				limit = kilobytes << 10
			}
		}
	}

	text, err := os.ReadFile(groups)
	if err != nil {
		return limit
	}

	for line := range strings.Lines(string(text)) {
		// Version 2 of control groups has one line, 0::/path; version 1 has one line for each controller.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")

		switch controllers {
		case "":
			limit = min(limit, groupLimit(mounted, path, "memory.max"))
		case "memory":
			limit = min(limit, groupLimit(filepath.Join(mounted, "memory"), path, "memory.limit_in_bytes"))
		}
	}

	return limit
}

// groupLimit returns the smallest limit of a control group and its ancestors. Inside a container, its own group can be
// the root.
func groupLimit(mounted, path, file string) int64 {
	limit := int64(math.MaxInt64)

	for {
		if text, err := os.ReadFile(filepath.Join(mounted, path, file)); err == nil {
			if number, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				limit = min(limit, number)
			}
		}

		if path == "/" || path == "." {
			return limit
		}

		path = filepath.Dir(path)
	}
}

func (a *App) registerQueryMetrics(q *query.Query) {
	for name, of := range map[string]struct {
		help string
		read func(query.Stats) int64
	}{
		"running": {"Statements that are running.", func(s query.Stats) int64 { return s.Running }},
		"waiting": {"Statements that wait for a slot.", func(s query.Stats) int64 { return s.Waiting }},
		"slots":   {"Statements that can run in sealed processes at the same time.", func(s query.Stats) int64 { return s.Slots }},
		"indexes": {"Value indexes that are open. Each holds a file open; at most 500 stay open.", func(s query.Stats) int64 { return s.OpenIndexes }},
		"trino":   {"Statements that are running on Trino. Their slots are QUERN_TRINO_MAX_RUNNING.", func(s query.Stats) int64 { return s.OnTrino }},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_query_" + name, Help: of.help},
			func() float64 { return float64(of.read(q.Stats())) }))
	}

	for name, of := range map[string]struct {
		help string
		read func(query.Stats) int64
	}{
		"refused_full_total": {"Statements refused because no slot was free.", func(s query.Stats) int64 { return s.RefusedFull }},
		"refused_user_total": {"Statements refused because their user had too many.", func(s query.Stats) int64 { return s.RefusedUser }},
		"invalid_total":      {"Statements refused because they are not valid.", func(s query.Stats) int64 { return s.Invalid }},
		"rows_total":         {"Rows returned.", func(s query.Stats) int64 { return s.Rows }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_query_" + name, Help: of.help},
			func() float64 { return float64(of.read(q.Stats())) }))
	}
}
