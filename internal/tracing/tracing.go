// Package tracing sends traces of runs, and ratings of runs, to a tracing store.
//
// A run is one trace. The run has the id of the trace from its beginning. The root of the trace is the span of the agent,
// and its id is derived from the id of the trace, so a worker that continues a run adds spans to the same tree. Ratings are
// scores of the trace.
//
// Invariants:
//   - A store that is slow or down does not slow any run: spans wait in a bounded queue, and spans that do not fit are lost.
//   - A span that was accepted is never sent again, because not every store recognises a repeated span.
//   - Questions, statements and answers are sent only if the operator enables it. Rows are never sent.
//   - Spans of runs have their own provider. Only code with the context of a run can add spans to its trace.
//
// Faults: UpstreamUnavailable.
package tracing

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"quern.dev/quern/internal/span"
)

// Kind is the kind of a tracing store.
type Kind string

const (
	None     Kind = "none"
	Phoenix  Kind = "phoenix"
	Langfuse Kind = "langfuse"
	OTLP     Kind = "otlp" // spans only, no ratings
)

// Config describes the store and what is sent to it.
type Config struct {
	Kind        Kind
	Endpoint    string // base URL, without the path of an operation
	Key         string // API key; for Langfuse "public:secret"
	Headers     string // further headers: name=value, separated by commas
	Project     string // project in Phoenix
	Environment string
	Capture     bool // send questions, statements and answers
	Client      *http.Client
	Log         *slog.Logger
}

// Tracing sends spans and ratings. The owner calls Stop.
type Tracing struct {
	config   Config
	headers  map[string]string
	provider *sdktrace.TracerProvider // nil means no store
	tracer   trace.Tracer
	scores   scores         // nil means that ratings are not sent to the store
	exporter *span.Exporter // nil means no store
}

// Off returns Tracing without a store.
func Off() *Tracing { return &Tracing{tracer: noop.NewTracerProvider().Tracer("")} }

// New returns Tracing with this configuration. It does not call the store, so the store need not be available yet.
func New(ctx context.Context, c Config) (*Tracing, error) {
	t := Off()
	if c.Kind == None {
		return t, nil
	}

	t.config = c

	if c.Endpoint == "" {
		return nil, errors.New("an endpoint is required")
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

	if t.exporter, err = span.NewExporter(ctx, "runs", t.config.Endpoint+c.Kind.path(), t.headers, c.Client, c.Log); err != nil {
		return nil, err
	}

	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(ids{}), sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "quern"),
			attribute.String("deployment.environment.name", c.Environment),
			attribute.String("openinference.project.name", c.Project),
		)),
		sdktrace.WithSpanProcessor(labels{}),
		t.exporter.Batched(),
	)
	t.tracer = t.provider.Tracer("quern.dev/quern")

	return t, nil
}

// headers returns the headers of every call: the credentials and the headers that the operator adds.
func (c Config) headers() (map[string]string, error) {
	set := map[string]string{}

	switch {
	case c.Kind == Langfuse:
		if public, secret, _ := strings.Cut(c.Key, ":"); public == "" || secret == "" {
			return nil, errors.New("the key of Langfuse must have the form public-key:secret-key")
		}

		set["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Key))
		set["x-langfuse-ingestion-version"] = "4"
	case c.Key != "":
		set["Authorization"] = "Bearer " + c.Key
	}

	if c.Kind == Phoenix {
		set["x-project-name"] = c.Project
	}

	more, err := span.ParseHeaders(c.Headers)
	maps.Copy(set, more)

	return set, err
}

// Stop sends the spans that still wait, until ctx ends.
func (t *Tracing) Stop(ctx context.Context) {
	if t.provider != nil {
		_ = t.provider.Shutdown(ctx) // ExportSpans counts and logs failures
	}
}

// Answers reports whether the last call of the store succeeded.
func (t *Tracing) Answers() bool {
	return t.exporter == nil || !t.exporter.Failed()
}

// Lost returns how many spans could not be sent to the store. It does not count spans that did not fit into the queue.
func (t *Tracing) Lost() int64 {
	if t.exporter == nil {
		return 0
	}

	return t.exporter.Lost()
}
