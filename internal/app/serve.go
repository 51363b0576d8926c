// Package app wires the packages together: it turns a configuration into a running service. It is the only package that
// imports all others, and it contains no other logic.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/erase"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/sandbox"
	"quern.dev/quern/internal/server"
	"quern.dev/quern/internal/source"
	"quern.dev/quern/internal/span"
	"quern.dev/quern/internal/tracing"
	"quern.dev/quern/internal/upload"
	"quern.dev/quern/internal/verified"
	"quern.dev/quern/internal/webhook"
)

// Serve runs the service with the settings of an environment in the format of os.Environ.
func Serve(ctx context.Context, environ []string, logTo io.Writer) error {
	c, err := config.Read[config.Serve](lookup(environ))
	if err != nil {
		return err
	}

	log := newLog(c.Log, logTo)
	for _, name := range config.Unknown(environ) {
		log.WarnContext(ctx, "there is no such setting: it has no effect", "name", name, "nearest", config.Nearest(name, environ))
	}

	app, err := New(ctx, c, log)
	if err != nil {
		return err
	}

	return app.Run(ctx)
}

func lookup(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value, true
			}
		}

		return "", false
	}
}

// App is a service that is wired but not yet listening.
type App struct {
	config        config.Serve
	log           *slog.Logger
	quiet         *slog.Logger // limits the messages about operations that are retried repeatedly
	db            *postgres.DB
	store         *blob.Store
	jobs          *job.Client
	sandbox       *sandbox.Sandbox
	lake          *lake.Lake
	runs          *run.Runs
	eraser        *erase.Eraser
	feed          *feed.Feed
	query         *query.Query
	meter         *catalog.Meter
	webhooks      *webhook.Webhooks
	connections   *connection.Connections
	sources       *source.Sources
	tracing       *tracing.Tracing
	spans         *span.Spans
	models        *llm.Models
	folder        *disk.Watch
	cluster       *query.Cluster // nil without Trino
	passing       string         // folder for files that pass between store and sandbox
	authenticator *auth.Authenticator
	server        *server.Server
	metrics       *prometheus.Registry
	observed      *observed
	leaving       atomic.Bool // a stop signal arrived: no longer ready
	endStreams    context.CancelFunc
	schemaFits    atomic.Bool // once the schema fits, it fits for the life of this process
	location      *location   // the bucket and prefix
	database      look
}

// New wires the service. No outside system needs to be reachable yet.
func New(ctx context.Context, c config.Serve, log *slog.Logger) (*App, error) {
	streaming, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	a := &App{config: c, log: log, quiet: job.Limited(log), metrics: prometheus.NewRegistry(), observed: newObserved(), endStreams: endStreams}

	if c.Catalog.Listen != "" && c.Catalog.Secret.Reveal() == "" {
		return nil, errors.New("QUERN_CATALOG_SECRET is required if QUERN_CATALOG_LISTEN is set")
	}

	var err error
	if a.db, err = openDatabase(ctx, c.Database); err != nil {
		return nil, err
	}

	if c.Trino.URL != "" {
		if a.cluster, err = a.newCluster(); err != nil {
			return nil, err
		}
	}

	if a.store, err = openStore(c.S3, a.observed.storeTransport, func(ctx context.Context) error { return a.location.mayRemove(ctx) }); err != nil {
		return nil, err
	}

	a.location = &location{db: a.db, store: a.store, started: time.Now()}

	if a.tracing, err = openTracing(ctx, c.Tracing, log); err != nil {
		return nil, err
	}

	if a.spans, err = openSpans(ctx, c.Spans, log); err != nil {
		return nil, err
	}

	if a.models, err = a.openModels(); err != nil {
		return nil, err
	}

	uploads := upload.Uploads{
		DB: a.db, Store: a.store, Now: time.Now, Grace: c.Data.DeleteGrace, Room: a.catalog().RoomTx,
		MaxOpenSessions: c.Upload.MaxOpenSessions, MaxOpenBytes: int64(c.Upload.MaxOpenBytes), MaxFile: int64(c.Upload.MaxFile),
	}

	if err := a.newConnections(); err != nil {
		return nil, err
	}

	if err := a.openLake(); err != nil {
		return nil, err
	}

	a.meter = catalog.NewMeter(a.catalog(), a.log)
	asking := a.newQuery()
	loading := a.newIngest(uploads, asking)
	known := &verified.Verified{DB: a.db, Catalog: a.catalog(), Query: asking, Now: time.Now}

	if err := a.newEvents(); err != nil {
		return nil, err
	}

	a.query, a.runs = asking, a.newRuns(asking, known)

	benchmarks := a.newBenchmarks(known)
	a.sources = a.newSources(uploads, loading)
	a.eraser = &erase.Eraser{
		DB: a.db, Lake: a.lake, Ingest: loading, Uploads: uploads, Query: asking, Runs: a.runs, Tracing: a.tracing, Log: a.quiet, Now: time.Now,
		Jobs: func() *job.Client { return a.jobs },
	}

	if a.jobs, err = a.newJobs(uploads, loading, asking, benchmarks); err != nil {
		return nil, err
	}

	client, err := httpClient(c.OIDC.Connection)
	if err != nil {
		return nil, fmt.Errorf("QUERN_OIDC_%w", err)
	}

	a.authenticator, err = auth.New(auth.Config{
		DB: a.db, Log: a.quiet, Now: time.Now, Client: client,
		Issuer: string(c.OIDC.Issuer), Audiences: c.OIDC.Audience, Algorithms: c.OIDC.Algorithms,
		UsernameClaim: c.OIDC.UsernameClaim, GroupsClaim: c.OIDC.GroupsClaim, OperatorGroup: c.OIDC.OperatorGroup, GroupsMaxAge: c.OIDC.GroupsMaxAge,
		ClockSkew: c.OIDC.ClockSkew, KeysRefresh: c.OIDC.KeysRefresh, KeysMaxAge: c.OIDC.KeysMaxAge,
	})
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}

	a.registerMetrics()

	agents, err := a.newAgents(asking, known)
	if err != nil {
		return nil, err
	}

	a.server, err = server.New(server.Config{
		Log: log, Spans: a.spans, Metrics: a.metrics, Authenticator: a.authenticator, Ready: a.ready,
		Tokens: auth.Tokens{
			DB: a.db, Now: time.Now, Secret: []byte(c.Server.Secret.Reveal()),
			DefaultLifetime: c.Token.DefaultLifetime, MaxLifetime: c.Token.MaxLifetime,
		},
		Catalog:     a.catalog(),
		Uploads:     uploads,
		Ingest:      loading,
		Query:       asking,
		Runs:        a.runs,
		Feed:        a.feed,
		Webhooks:    a.webhooks,
		Connections: a.connections,
		Sources:     a.sources,
		Verified:    known,
		Benchmark:   benchmarks,
		Audit:       audit.Log{DB: a.db},
		Accounts:    auth.Accounts{DB: a.db, Now: time.Now},
		Queues:      a.queueStates,
		Agents:      agents,
		Console:     a.newConsole(ctx),
		PublicURL:   string(c.Server.PublicURL), Issuer: string(c.OIDC.Issuer),
		TrustedProxies: c.Server.TrustedProxies, CORSOrigins: c.Server.CORSOrigins,
		RateLimit: c.Server.RateLimit, RateBurst: c.Server.RateBurst,
		MaxBody: int64(c.Server.MaxBody), MaxRows: int64(c.Ingest.MaxBody), RequestTimeout: c.Server.RequestTimeout,
		QueryTimeout: a.queryTimeout(), Dir: a.passing,
		WhenStopping: func(do func()) func() bool { return context.AfterFunc(streaming, do) },
	})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}

	return a, nil
}

// Handler returns the API without a listener.
func (a *App) Handler() http.Handler { return a.server.Handler() }

// Close releases what New acquired. Run calls Close.
func (a *App) Close() {
	if a.sandbox != nil {
		a.sandbox.Close()
	}

	if a.lake != nil {
		_ = a.lake.Close() // only releases a lock
	}

	a.db.Close()
}

// Run serves until a stop signal, then stops in this order: report not ready, accept no new connections, finish running
// requests, finish background work, close the pool. A second signal ends the process at once.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()

	if err := errors.Join(a.startDatabase(ctx), a.startStore(ctx)); err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	listeners, err := a.listen(ctx)
	if err != nil {
		return err
	}

	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer endBackground()

	var running sync.WaitGroup
	failed := make(chan error, len(listeners)+1)

	for _, loop := range []func(context.Context){
		a.authenticator.Run, a.preparePartitions, a.work, a.runs.Tail, a.feed.Run, a.webhooks.Run, a.models.Watch, a.meter.Run, a.folder.Run, a.eraser.Watch, a.sources.Follow,
		func(ctx context.Context) { a.watch(ctx, failed) },
	} {
		running.Go(func() { a.keep(background, loop) })
	}

	for _, l := range listeners {
		a.log.InfoContext(ctx, "listening", "what", l.name, "address", l.listener.Addr().String())

		go func() { failed <- l.server.Serve(l.listener) }()
	}

	select {
	case err = <-failed:
		endBackground() // take no more work while running requests end

		err = errors.Join(err, a.shutDown(context.WithoutCancel(ctx), listeners, 0))
	case <-ctx.Done():
		stop() // from here on a second signal ends the process

		err = a.shutDown(background, listeners, a.config.Server.DrainDelay)
	}

	endBackground()
	running.Wait()
	a.stopTracing(ctx)
	a.log.InfoContext(ctx, "stopped")

	return err
}

const restartAfter = time.Second

// keep runs a background loop until ctx ends. It restarts the loop after a panic.
func (a *App) keep(ctx context.Context, loop func(context.Context)) {
	for {
		err := fault.Try(func() error {
			loop(ctx)

			return nil
		})
		if err == nil {
			return
		}

		a.log.ErrorContext(ctx, "a background task failed and is started again", "error", err)

		select {
		case <-ctx.Done():
			return
		case <-time.After(restartAfter):
		}
	}
}

// stopTracing sends the last spans.
func (a *App) stopTracing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceTime)
	defer cancel()

	a.tracing.Stop(ctx)
	a.spans.Stop(ctx)
}

type listening struct {
	name     string
	listener net.Listener
	server   *http.Server
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	partitionsEvery   = 12 * time.Hour
	partitionsRetry   = time.Minute
	readyTimeout      = 2 * time.Second
	storeEvery        = 10 * time.Second
	workRetry         = 2 * time.Second
	traceTime         = 3 * time.Second
)

func (a *App) listen(ctx context.Context) ([]listening, error) {
	var list []listening

	for _, l := range []struct {
		name, setting, address string
		handler                http.Handler
		timeout                time.Duration
	}{
		{"api", "QUERN_LISTEN_ADDR", a.config.Server.ListenAddr, a.Handler(), a.config.Server.RequestTimeout},
		{"admin", "QUERN_ADMIN_ADDR", a.config.Server.AdminAddr, a.server.Admin(a.metrics), 0}, // a profile takes as long as requested
		{"catalog", "QUERN_CATALOG_LISTEN", a.config.Catalog.Listen, a.trinoCatalog(), a.config.Server.RequestTimeout},
	} {
		if l.address == "" { // only the catalog is optional
			continue
		}

		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.setting, err)
		}

		list = append(list, listening{name: l.name, listener: listener, server: &http.Server{
			Handler: a.draining(l.handler), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
			ReadTimeout: l.timeout, WriteTimeout: 2 * l.timeout, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		}})
	}

	return list, nil
}

// draining closes the connection with each response while the process stops: a client that keeps the connection open
// would send its next request to a process that refuses it.
func (a *App) draining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.leaving.Load() {
			w.Header().Set("Connection", "close")
		}

		next.ServeHTTP(w, r)
	})
}

func (a *App) shutDown(ctx context.Context, listeners []listening, drain time.Duration) error {
	a.log.InfoContext(ctx, "stopping", "drain", drain, "timeout", a.config.Server.ShutdownTimeout)
	a.leaving.Store(true)
	time.Sleep(drain)
	a.endStreams()

	ctx, cancel := context.WithTimeout(ctx, a.config.Server.ShutdownTimeout)
	defer cancel()

	var problems []error

	for _, l := range listeners {
		err := l.server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			a.log.WarnContext(ctx, "requests did not finish in time and were closed", "what", l.name)

			err = l.server.Close()
		}

		problems = append(problems, err)
	}

	return errors.Join(problems...)
}

func (a *App) preparePartitions(ctx context.Context) {
	for {
		pause := partitionsEvery

		if err := errors.Join(audit.Prepare(ctx, a.db, time.Now()), run.Prepare(ctx, a.db, time.Now()), event.Prepare(ctx, a.db, time.Now())); err != nil && ctx.Err() == nil {
			a.quiet.WarnContext(ctx, "partitions could not be prepared", "error", err)
			pause = partitionsRetry
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
