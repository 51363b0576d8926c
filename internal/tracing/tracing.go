// Package tracing tells a tracing store what runs did, and what people think of it.
//
// A run is one trace, whose id the run has from the beginning. Its root is the span of the agent, with an id that
// follows from the trace's: whoever goes on with a run that another began adds to the same tree. Ratings are scores on
// the trace.
//
// Invariants:
//   - A store that is slow or down slows no run: spans wait in a bounded queue, and what does not fit is lost.
//   - A span that was sent is never sent again: not every store would know it.
//   - What people ask, the statements and the answers go out only if the operator wants it so; rows never.
//   - Spans of runs have a provider of their own; only who works on a run, and has its context, can get into it.
//
// Faults: UpstreamUnavailable.
package tracing

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Kind is what the store is.
type Kind string

const (
	None     Kind = "none"
	Phoenix  Kind = "phoenix"
	Langfuse Kind = "langfuse"
	OTLP     Kind = "otlp" // spans alone
)

// Config is where the store is, and what it gets.
type Config struct {
	Kind        Kind
	Endpoint    string // without the path of an operation
	Key         string // of Phoenix; "public:secret" of Langfuse
	Headers     string // name=value, separated by commas
	Project     string // of Phoenix
	Environment string
	Capture     bool // questions, statements and answers go out
	Client      *http.Client
	Log         *slog.Logger
}

// Tracing sends spans and ratings. Stop it.
type Tracing struct {
	config   Config
	headers  map[string]string
	provider *sdktrace.TracerProvider // nil: no store
	tracer   trace.Tracer
	scores   scores // nil: ratings are kept here alone
	lost     atomic.Int64
	silent   atomic.Bool  // the store did not answer when it was last called
	told     atomic.Int64 // when that was last in the log
}

const (
	queueSpans   = 2048
	batchSpans   = 256
	batchTime    = 500 * time.Millisecond
	exportTime   = 5 * time.Second
	retryFirst   = 500 * time.Millisecond
	retryLongest = 2 * time.Second
	tellEvery    = time.Minute
)

// Off is Tracing without a store.
func Off() *Tracing { return &Tracing{tracer: noop.NewTracerProvider().Tracer("")} }

// New returns Tracing. The store need not answer yet.
func New(ctx context.Context, c Config) (*Tracing, error) {
	t := Off()
	if c.Kind == None {
		return t, nil
	}

	t.config = c

	if c.Endpoint == "" {
		return nil, errors.New("it needs an endpoint")
	}

	t.config.Endpoint = strings.TrimRight(c.Endpoint, "/")

	var err error
	if t.headers, err = c.headers(); err != nil {
		return nil, err
	}

	switch c.Kind {
	case Phoenix:
		t.scores = phoenix{t}
	case Langfuse:
		t.scores = langfuse{t}
	default:
	}

	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(t.config.Endpoint+c.Kind.path()), otlptracehttp.WithHTTPClient(c.Client), otlptracehttp.WithHeaders(t.headers),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithTimeout(exportTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: retryFirst, MaxInterval: retryLongest, MaxElapsedTime: exportTime}))
	if err != nil {
		return nil, fmt.Errorf("preparing the export of spans: %w", err)
	}

	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(ids{}), sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "quern"),
			attribute.String("deployment.environment.name", c.Environment),
			attribute.String("openinference.project.name", c.Project),
		)),
		sdktrace.WithSpanProcessor(labels{}),
		sdktrace.WithBatcher(sending{exporter, t}, sdktrace.WithMaxQueueSize(queueSpans), sdktrace.WithMaxExportBatchSize(batchSpans),
			sdktrace.WithBatchTimeout(batchTime), sdktrace.WithExportTimeout(exportTime)),
	)
	t.tracer = t.provider.Tracer("quern.dev/quern")

	return t, nil
}

// headers are what every call carries: who we are, and what the operator adds.
func (c Config) headers() (map[string]string, error) {
	set := map[string]string{}

	switch {
	case c.Kind == Langfuse:
		if public, secret, _ := strings.Cut(c.Key, ":"); public == "" || secret == "" {
			return nil, errors.New("the key of Langfuse is its public and its secret key with a colon between them")
		}

		set["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Key))
		set["x-langfuse-ingestion-version"] = "4"
	case c.Key != "":
		set["Authorization"] = "Bearer " + c.Key
	}

	if c.Kind == Phoenix {
		set["x-project-name"] = c.Project
	}

	for entry := range strings.SplitSeq(c.Headers, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(entry), "=")
		if found && name != "" {
			set[name] = value
		} else if entry != "" {
			return nil, errors.New("the headers are not name=value, separated by commas")
		}
	}

	return set, nil
}

// Stop sends what waits, as long as ctx lasts.
func (t *Tracing) Stop(ctx context.Context) {
	if t.provider != nil {
		_ = t.provider.Shutdown(ctx) // what is lost was counted
	}
}

// Answers tells whether the store answered when it was last called.
func (t *Tracing) Answers() bool { return !t.silent.Load() }

// Lost is how many spans did not reach the store.
func (t *Tracing) Lost() int64 { return t.lost.Load() }

// sending counts what could not be sent, and says so now and then.
type sending struct {
	sdktrace.SpanExporter

	t *Tracing
}

// ExportSpans implements sdktrace.SpanExporter.
func (s sending) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.t.silent.Store(err != nil)

	if err == nil {
		return nil
	}

	s.t.lost.Add(int64(len(spans)))

	now, last := time.Now().UnixNano(), s.t.told.Load()
	if time.Duration(now-last) > tellEvery && s.t.told.CompareAndSwap(last, now) {
		s.t.config.Log.WarnContext(ctx, "spans could not be sent to the tracing store", "spans", len(spans), "lost", s.t.lost.Load(), "error", err)
	}

	return nil // or it would be printed past our log
}
