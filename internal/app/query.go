package app

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/duckdb"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
)

// newQuery wires what runs statements.
func (a *App) newQuery() *query.Query {
	c := a.config.Query

	threads := c.Threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}

	running := c.Running
	if running == 0 {
		running = a.room(memoryLimit("/proc/self/cgroup", "/sys/fs/cgroup", "/proc/meminfo"))
	}

	a.log.Info("statements", "running", running, "threads", threads, "memory", int64(c.Memory))

	made := query.New(query.Config{
		DB: a.db, Catalog: a.catalog(), Lake: a.lake, Log: a.log, Now: time.Now, Credentials: a.credentials(),
		Engine: engine.New(engine.Config{
			Sandbox: a.sandbox, Program: duckdb.Name, Log: a.log, Sessions: running, Memory: int64(c.Memory), Threads: threads, Disk: int64(c.Disk),
			Data: math.MaxInt64,
		}),
		Time: c.Time, Rows: int64(c.Rows), MaxRows: int64(c.MaxRows), Bytes: int64(c.Bytes), CacheBytes: int64(a.config.Cache.Bytes),
		Running: running, PerUser: c.PerUser, Queue: c.Queue, Wait: c.Wait,
		Exports: a.newExports(threads),
	})
	a.registerQueryMetrics(made)

	return made
}

// newExports gives exports children of their own, so that they take no place of a statement.
func (a *App) newExports(threads int) query.Exports {
	c := a.config.Export

	return query.Exports{
		Store: a.store, Jobs: func() *job.Client { return a.jobs }, Dir: a.passing,
		Engine: engine.New(engine.Config{
			Sandbox: a.sandbox, Program: duckdb.Name, Log: a.log, Sessions: c.Workers, Memory: int64(a.config.Query.Memory), Threads: threads,
			Disk: int64(c.Disk), Data: int64(c.Disk),
		}),
		Stream: int64(c.Stream), Time: c.Time, Keep: c.Keep,
	}
}

const (
	serverMemory = 512 << 20 // what the server itself takes
	perProcessor = 4
)

// room is how many statements can run at once so that, with all ingestions, exports and upkeep, they never take more memory
// than there is: a container that takes more is killed as a whole. A child counts with all that it may map.
func (a *App) room(memory int64) int {
	ingestions := int64(a.config.Ingest.Workers)
	if ingestions > 0 {
		ingestions++ // for large files
	}

	left := memory - serverMemory - ingestions*engine.Mapped(int64(a.config.Ingest.Memory)) -
		int64(a.config.Upkeep.Workers)*engine.Mapped(int64(a.config.Upkeep.Memory))
	fits := left/engine.Mapped(int64(a.config.Query.Memory)) - int64(a.config.Export.Workers)

	return int(min(max(fits, 1), int64(perProcessor*runtime.NumCPU())))
}

// memoryLimit is how much memory this process may take with its children: the least of what its control groups and
// the machine have. The files are read where the kernel has them.
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
		// Version 2 has one line, 0::/path; version 1 one for each controller.
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

// groupLimit is the least limit of a group and those above it. In a container its own group can be the root.
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
		"running": {"Statements that run.", func(s query.Stats) int64 { return s.Running }},
		"waiting": {"Statements that wait for a place.", func(s query.Stats) int64 { return s.Waiting }},
		"places":  {"Statements that can run at once.", func(s query.Stats) int64 { return s.Places }},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_query_" + name, Help: of.help},
			func() float64 { return float64(of.read(q.Stats())) }))
	}

	for name, of := range map[string]struct {
		help string
		read func(query.Stats) int64
	}{
		"refused_full_total": {"Statements refused because all places were taken.", func(s query.Stats) int64 { return s.RefusedFull }},
		"refused_user_total": {"Statements refused because their user had too many.", func(s query.Stats) int64 { return s.RefusedUser }},
		"invalid_total":      {"Statements refused for what they say.", func(s query.Stats) int64 { return s.Invalid }},
		"rows_total":         {"Rows given.", func(s query.Stats) int64 { return s.Rows }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_query_" + name, Help: of.help},
			func() float64 { return float64(of.read(q.Stats())) }))
	}
}
