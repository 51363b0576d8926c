// Package span records what the service does as spans of OpenTelemetry: requests, jobs, statements, sealed processes, and calls of
// PostgreSQL, the object store and models. Traces of runs, for people who judge answers, are the business of the package tracing.
//
// Invariants:
//   - A span contains no names that users choose, no text of a statement of a user, no cell, no secret and no message of an error.
//   - A store that is slow or down does not slow the service: spans wait in a bounded queue, and spans that do not fit are lost.
//   - Spans of this package are kept apart from spans of runs: the context has a key of its own for them.
//
// Every request and every job has a trace id, also if no store is configured, so that lines of the log belong together.
package span

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"quern.dev/quern/internal/fault"
)

// Config describes where spans are sent.
type Config struct {
	Endpoint    string  // base URL; spans are sent to Endpoint/v1/traces. Empty: no spans are sent
	Headers     string  // headers of each request: name=value, separated by commas
	Share       float64 // share of the traces that are sent, from 0 to 1
	Environment string
	Version     string
	Client      *http.Client
	Log         *slog.Logger
}

// Spans starts the spans of requests and jobs. The owner calls Stop.
type Spans struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *Exporter // nil if no spans are sent
}

// New returns Spans. It does not call the store, so the store need not be available yet.
func New(ctx context.Context, c Config) (*Spans, error) {
	if c.Endpoint == "" {
		return create(sdktrace.WithSampler(sdktrace.NeverSample())), nil
	}

	headers, err := ParseHeaders(c.Headers)
	if err != nil {
		return nil, err
	}

	exporter, err := NewExporter(ctx, "requests and jobs", c.Endpoint+"/v1/traces", headers, c.Client, c.Log)
	if err != nil {
		return nil, err
	}

	s := create(
		sdktrace.WithSampler(sampler(c.Share)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "quern"),
			attribute.String("service.version", c.Version),
			attribute.String("deployment.environment.name", c.Environment),
		)),
		exporter.Batched(),
	)
	s.exporter = exporter

	return s, nil
}

// sampler sends a share of the traces, and those of trusted callers who send theirs.
func sampler(share float64) sdktrace.Sampler {
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))
}

// Off returns Spans that sends nothing.
func Off() *Spans { return create(sdktrace.WithSampler(sdktrace.NeverSample())) }

func create(options ...sdktrace.TracerProviderOption) *Spans {
	provider := sdktrace.NewTracerProvider(options...)

	return &Spans{provider: provider, tracer: provider.Tracer("quern.dev/quern")}
}

// Stop sends the spans that still wait, until ctx ends.
func (s *Spans) Stop(ctx context.Context) { _ = s.provider.Shutdown(ctx) } // the exporter counts and logs failures

// Lost returns how many spans could not be sent. It does not count spans that did not fit into the queue.
func (s *Spans) Lost() int64 {
	if s.exporter == nil {
		return 0
	}

	return s.exporter.Lost()
}

// Span is a span that is not ended yet. A nil Span is not recorded.
type Span struct{ span trace.Span }

// Attribute is a fact about a span.
type Attribute = attribute.KeyValue

// Text is a fact that is a word. It must not be a name that a user chose, or content.
func Text(name, value string) Attribute { return attribute.String(name, value) }

// Number is a fact that is a number.
func Number(name string, value int64) Attribute { return attribute.Int64(name, value) }

type spanKey struct{}

func of(ctx context.Context) trace.Span {
	span, ok := ctx.Value(spanKey{}).(trace.Span)
	if !ok {
		return nil
	}

	return span
}

func with(ctx context.Context, span trace.Span) context.Context {
	return context.WithValue(ctx, spanKey{}, span)
}

// Request starts the span of a request. If the caller is trusted, the span continues the trace that the header Traceparent names;
// otherwise the trace is new and has a link to it.
func (s *Spans) Request(ctx context.Context, header http.Header, trusted bool) (context.Context, *Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	caller := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header))

	if !trusted {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(caller)))
	}

	_, started := s.tracer.Start(caller, "request", options...) //nolint:spancheck // the caller ends it

	return with(ctx, started), &Span{started} //nolint:spancheck // the same
}

// Job starts the span of an attempt at a job, in a new trace with a link to what inserted the job. cause is what Parent returned there.
func (s *Spans) Job(ctx context.Context, kind, cause string, attributes ...Attribute) (context.Context, *Span) {
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...)}

	if cause != "" {
		inserting := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: cause})
		options = append(options, trace.WithLinks(trace.LinkFromContext(inserting)))
	}

	_, started := s.tracer.Start(context.Background(), "job "+kind, options...) //nolint:spancheck // the caller ends it

	return with(ctx, started), &Span{started} //nolint:spancheck // the same
}

// Start starts a span inside the span of ctx. If ctx has none that is recorded, it returns nil.
func Start(ctx context.Context, name string, attributes ...Attribute) (context.Context, *Span) {
	outer := of(ctx)
	if outer == nil || !outer.IsRecording() {
		return ctx, nil
	}

	_, started := outer.TracerProvider().Tracer("quern.dev/quern"). //nolint:spancheck // the caller ends it
									Start(trace.ContextWithSpan(context.Background(), outer), name, trace.WithAttributes(attributes...))

	return with(ctx, started), &Span{started} //nolint:spancheck // the same
}

const header = "traceparent"

// Parent returns the span of ctx in the form of the header Traceparent, or "" if ctx has none.
func Parent(ctx context.Context) string {
	span := of(ctx)
	if span == nil {
		return ""
	}

	is := span.SpanContext()

	return "00-" + is.TraceID().String() + "-" + is.SpanID().String() + "-" + is.TraceFlags().String()
}

// TraceID returns the id of the trace of ctx, or "" if ctx has none.
func TraceID(ctx context.Context) string {
	span := of(ctx)
	if span == nil {
		return ""
	}

	return span.SpanContext().TraceID().String()
}

// Sent reports whether the trace of ctx is sent to a store.
func Sent(ctx context.Context) bool {
	span := of(ctx)

	return span != nil && span.IsRecording()
}

// Name replaces the name of a span.
func (s *Span) Name(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Set adds facts to a span.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.span.SetAttributes(attributes...)
	}
}

// End ends a span. Of an error it records only the code, because a message may quote data.
func (s *Span) End(err error) {
	if s == nil {
		return
	}

	if err != nil {
		code := string(fault.From(err).Code)
		if errors.Is(err, context.Canceled) {
			code = "canceled"
		}

		s.span.SetAttributes(attribute.String("error.type", code))
		s.span.SetStatus(codes.Error, code)
	}

	s.span.End()
}
