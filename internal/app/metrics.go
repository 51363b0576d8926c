package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"quern.dev/quern/internal/build"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/server"
	"quern.dev/quern/internal/span"
)

// observed contains the metrics of other packages. They report to it through functions of their configuration. No label may have a value that callers choose, such
// as an account or a dataset: the number of series must not grow with the use of the service.
type observed struct {
	jobs, runs, store, models, loads, commits *prometheus.HistogramVec
	tokens, limits                            *prometheus.CounterVec
	conflicts                                 prometheus.Counter
}

// longWork are the buckets for work that takes from milliseconds to hours.
func longWork() []float64 {
	return []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 120, 300, 900, 3600, 4 * 3600}
}

func newObserved() *observed {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}

	o := &observed{
		jobs: histogram("quern_job_seconds", "Duration of attempts at background jobs. The outcome is done, errored (repeated later) or waited (returned to the queue).", longWork(), "kind", "outcome"),
		runs: histogram("quern_run_seconds", "Duration of questions, from the worker that began to the answer. The outcome is completed, failed or waiting (for a choice).",
			[]float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}, "agent", "outcome"),
		store: histogram("quern_store_request_seconds", "Time until the object store begins its response. The outcome is ok, refused (a status of 4xx) or failed.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "method", "outcome"),
		models: histogram("quern_model_seconds", "Duration of calls of language models. The outcome is answered or failed.",
			[]float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}, "model", "outcome"),
		loads: histogram("quern_ingest_seconds", "Time from the request of an ingestion to its end. The kind is files or rows (a request with rows in its body). The outcome is completed or failed.",
			longWork(), "kind", "outcome"),
		commits: histogram("quern_commit_seconds", "Duration of commits of tables. The outcome is done or refused (nothing was changed).",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "mode", "outcome"),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quern_commit_conflicts_total", Help: "Attempts at a commit that began again because another commit came first.",
		}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quern_model_tokens_total", Help: "Tokens of language models. The direction is input or output.",
		}, []string{"model", "direction"}),
		limits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quern_limit_refused_total", Help: "Requests and calls of models that a limit of an account refused. The kind is that of quernd limit.",
		}, []string{"kind"}),
	}

	for _, kind := range catalog.Kinds() {
		o.limits.WithLabelValues(string(kind)) // it is shown before the first refusal
	}

	return o
}

func (o *observed) job(_ context.Context, kind string, outcome job.Outcome, took time.Duration) {
	o.jobs.WithLabelValues(kind, string(outcome)).Observe(took.Seconds())
}

func (o *observed) run(agent string, status run.Status, took time.Duration) {
	o.runs.WithLabelValues(agent, string(status)).Observe(took.Seconds())
}

func (o *observed) refused(kind catalog.Kind) { o.limits.WithLabelValues(string(kind)).Inc() }

func (o *observed) load(kind string, status ingest.Status, took time.Duration) {
	o.loads.WithLabelValues(kind, string(status)).Observe(took.Seconds())
}

func (o *observed) commit(mode lake.Mode, err error, lost int, took time.Duration) {
	outcome := "done"
	if err != nil {
		outcome = "refused"
	}

	o.commits.WithLabelValues(string(mode), outcome).Observe(took.Seconds())
	o.conflicts.Add(float64(lost))
}

func (o *observed) model(name string, answered bool, used llm.Usage, took time.Duration) {
	outcome := "failed"
	if answered {
		outcome = "answered"
	}

	o.models.WithLabelValues(name, outcome).Observe(took.Seconds())
	o.tokens.WithLabelValues(name, "input").Add(float64(used.InputTokens))
	o.tokens.WithLabelValues(name, "output").Add(float64(used.OutputTokens))
}

// storeTransport observes the requests to the object store.
func (o *observed) storeTransport(next http.RoundTripper) http.RoundTripper {
	return storeTransport{span.Transport(next, "store"), o}
}

type storeTransport struct {
	next http.RoundTripper
	*observed
}

func (t storeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := time.Now()
	response, err := t.next.RoundTrip(r)
	outcome := "ok"

	switch {
	case err != nil || response.StatusCode >= http.StatusInternalServerError:
		outcome = "failed"
	case response.StatusCode >= http.StatusBadRequest:
		outcome = "refused"
	}

	t.store.WithLabelValues(r.Method, outcome).Observe(time.Since(begin).Seconds())

	return response, err
}

func (a *App) registerMetrics() {
	o := a.observed
	a.metrics.MustRegister(o.jobs, o.runs, o.store, o.models, o.tokens, o.limits, o.loads, o.commits, o.conflicts, backlogs{a}, checks{a}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	is := build.Read()
	a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quern_build_info", Help: "Always 1. The labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": is.Version, "revision": is.Revision, "go": is.Go},
	}, func() float64 { return 1 }))

	a.registerPoolMetrics()
	a.registerCacheMetrics()
	a.metrics.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "quern_lease_lost_total", Help: "Leases that this replica lost while it worked under them. Another replica repeats the work."},
		func() float64 { return float64(a.jobs.LeasesLost()) }))
	a.metrics.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "quern_tracing_spans_lost_total", Help: "Spans that did not reach the tracing store."},
		func() float64 { return float64(a.tracing.Lost()) }))
	a.metrics.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "quern_spans_lost_total", Help: "Spans of requests and jobs that did not reach their store."},
		func() float64 { return float64(a.spans.Lost()) }))
}

func (a *App) registerPoolMetrics() {
	for name, of := range map[string]struct {
		help string
		read func() float64
	}{
		"used":  {"Connections to PostgreSQL that are in use.", func() float64 { return float64(a.db.Stats().AcquiredConns()) }},
		"idle":  {"Connections to PostgreSQL that are open and idle.", func() float64 { return float64(a.db.Stats().IdleConns()) }},
		"limit": {"Value of QUERN_DATABASE_MAX_CONNS.", func() float64 { return float64(a.db.Stats().MaxConns()) }},
	} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quern_postgres_connections_" + name, Help: of.help}, of.read))
	}

	for name, of := range map[string]struct {
		help string
		read func() float64
	}{
		"acquires_total":        {"Times that a connection was taken from the pool.", func() float64 { return float64(a.db.Stats().AcquireCount()) }},
		"acquire_waits_total":   {"Times that no connection was free, so that the caller waited for one.", func() float64 { return float64(a.db.Stats().EmptyAcquireCount()) }},
		"acquire_seconds_total": {"Time spent waiting for connections.", func() float64 { return a.db.Stats().AcquireDuration().Seconds() }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_postgres_" + name, Help: of.help}, of.read))
	}
}

func (a *App) registerCacheMetrics() {
	a.metrics.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "quern_cache_bytes", Help: "Size of the local copies of data files."},
		func() float64 { return float64(a.lake.Cache().Bytes) }))

	for name, of := range map[string]struct {
		help string
		read func(lake.CacheStats) int64
	}{
		"hits_total":   {"Data files that a statement or a job needed and that had a local copy.", func(s lake.CacheStats) int64 { return s.Hits }},
		"misses_total": {"Data files that were fetched from the object store.", func(s lake.CacheStats) int64 { return s.Misses }},
	} {
		a.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "quern_cache_" + name, Help: of.help},
			func() float64 { return float64(of.read(a.lake.Cache())) }))
	}
}

// backlogs collects the backlogs of all queues. Every replica reports the same numbers, because the queues are in the database.
type backlogs struct{ *App }

// scrapeTime is how long a scrape waits for the database.
const scrapeTime = 2 * time.Second

func backlogJobs() *prometheus.Desc {
	return prometheus.NewDesc("quern_job_waiting", "Jobs that no worker has taken yet, over all replicas.", []string{"queue"}, nil)
}

func backlogOldest() *prometheus.Desc {
	return prometheus.NewDesc("quern_job_oldest_seconds", "How long the oldest job that no worker has taken yet has waited, over all replicas.", []string{"queue"}, nil)
}

func (backlogs) Describe(to chan<- *prometheus.Desc) {
	to <- backlogJobs()
	to <- backlogOldest()
}

// Collect reads the backlogs from the database. If the database does not answer, the metrics are absent.
func (b backlogs) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()

	found, err := b.queueStates(ctx)
	if err != nil {
		b.quiet.WarnContext(ctx, "the backlog of jobs could not be read", "error", err)

		return
	}

	for _, one := range found {
		to <- prometheus.MustNewConstMetric(backlogJobs(), prometheus.GaugeValue, float64(one.Waiting), one.Name)
		to <- prometheus.MustNewConstMetric(backlogOldest(), prometheus.GaugeValue, one.Oldest.Seconds(), one.Name)
	}
}

// queueStates returns the backlog of every queue. A queue without jobs is 0, not absent.
func (a *App) queueStates(ctx context.Context) (list []server.Queue, err error) {
	found, err := a.jobs.Backlogs(ctx)

	for _, name := range queues() {
		state := server.Queue{Name: name}

		if at := slices.IndexFunc(found, func(b job.Backlog) bool { return b.Queue == name }); at >= 0 {
			state.Waiting, state.Oldest = found[at].Jobs, found[at].Oldest
		}

		list = append(list, state)
	}

	return list, err
}

// checks collects the state of the dependencies as /readyz reports it.
type checks struct{ *App }

func checkOK() *prometheus.Desc {
	return prometheus.NewDesc("quern_check_ok", "1 if the check of /readyz with this name succeeds, else 0.", []string{"check"}, nil)
}

func (checks) Describe(to chan<- *prometheus.Desc) { to <- checkOK() }

func (c checks) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()

	for _, one := range c.ready(ctx) {
		value := 0.0
		if one.OK {
			value = 1
		}

		to <- prometheus.MustNewConstMetric(checkOK(), prometheus.GaugeValue, value, one.Name)
	}
}
