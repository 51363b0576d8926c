package span

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"quern.dev/quern/internal/fault"
)

func recording(t *testing.T) (*Spans, *tracetest.SpanRecorder) {
	t.Helper()

	recorder := tracetest.NewSpanRecorder()
	s := create(sdktrace.WithSpanProcessor(recorder))
	t.Cleanup(func() { s.Stop(context.WithoutCancel(t.Context())) })

	return s, recorder
}

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

func fromCaller() http.Header {
	return http.Header{"Traceparent": {"00-" + callerTrace + "-" + callerSpan + "-01"}}
}

func TestRequest(t *testing.T) {
	t.Parallel()

	spans, recorder := recording(t)

	trusted, one := spans.Request(t.Context(), fromCaller(), true)
	require.Equal(t, callerTrace, TraceID(trusted))
	one.End(nil)

	stranger, two := spans.Request(t.Context(), fromCaller(), false)
	require.NotEqual(t, callerTrace, TraceID(stranger))
	require.Regexp(t, "^00-"+TraceID(stranger)+"-[0-9a-f]{16}-01$", Parent(stranger))
	two.End(nil)

	ended := recorder.Ended()
	require.Equal(t, callerSpan, ended[0].Parent().SpanID().String())
	require.Empty(t, ended[0].Links())
	require.False(t, ended[1].Parent().IsValid(), "a stranger cannot put spans into a trace of others")
	require.Equal(t, callerTrace, ended[1].Links()[0].SpanContext.TraceID().String())
}

// TestJob checks that an attempt at a job is a trace of its own, with a link to the request that inserted the job.
func TestJob(t *testing.T) {
	t.Parallel()

	spans, recorder := recording(t)

	request, one := spans.Request(t.Context(), nil, false)
	worker, two := spans.Job(t.Context(), "load", Parent(request), Number("quern.job.attempt", 2))
	inner, three := Start(worker, "statement")
	require.Equal(t, TraceID(worker), TraceID(inner))
	require.NotEqual(t, TraceID(request), TraceID(worker))

	for _, s := range []*Span{three, two, one} {
		s.End(nil)
	}

	_, alone := spans.Job(t.Context(), "sweep", "not a span")
	alone.End(nil)

	ended := recorder.Ended()
	require.Equal(t, []string{"statement", "job load", "request", "job sweep"}, []string{ended[0].Name(), ended[1].Name(), ended[2].Name(), ended[3].Name()})
	require.Equal(t, ended[1].SpanContext().SpanID(), ended[0].Parent().SpanID())
	require.Equal(t, TraceID(request), ended[1].Links()[0].SpanContext.TraceID().String())
	require.Contains(t, ended[1].Attributes(), attribute.Int64("quern.job.attempt", 2))
}

// TestApart checks that spans of the service never get into the trace of a run, and the other way round.
func TestApart(t *testing.T) {
	t.Parallel()

	spans, recorder := recording(t)
	runs := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(runs))

	ctx, request := spans.Request(t.Context(), nil, false)
	ctx, run := provider.Tracer("").Start(ctx, "run")
	ctx, inner := Start(ctx, "statement")
	_, model := trace.SpanFromContext(ctx).TracerProvider().Tracer("").Start(ctx, "chat")

	model.End()
	inner.End(nil)
	run.End()
	request.End(nil)

	require.Len(t, recorder.Ended(), 2)
	require.Equal(t, request.span.SpanContext().SpanID(), recorder.Ended()[0].Parent().SpanID())
	require.Len(t, runs.Ended(), 2)
	require.Equal(t, run.SpanContext().SpanID(), runs.Ended()[0].Parent().SpanID())
}

func TestErrorsAreCodes(t *testing.T) {
	t.Parallel()

	spans, recorder := recording(t)

	for _, err := range []error{fault.New(fault.Conflict, "the cell 4711"), errors.New("the cell 4711"), context.Canceled} {
		_, s := spans.Request(t.Context(), nil, false)
		s.End(err)
	}

	for i, want := range []string{"CONFLICT", "INTERNAL", "canceled"} {
		ended := recorder.Ended()[i]
		require.Equal(t, want, ended.Status().Description)
		require.Contains(t, ended.Attributes(), attribute.String("error.type", want))
		require.Empty(t, ended.Events())
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()

	spans, recorder := recording(t)
	store := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(store.Close)

	client := &http.Client{Transport: Transport(http.DefaultTransport, "store")}
	ctx, request := spans.Request(t.Context(), nil, false)

	for _, in := range []context.Context{ctx, t.Context()} { // a call outside of a request has no span
		r, err := http.NewRequestWithContext(in, http.MethodGet, store.URL+"/secret-name?signature=secret", nil)
		require.NoError(t, err)

		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusNotFound, response.StatusCode)
	}

	request.End(nil)

	require.Len(t, recorder.Ended(), 2)
	require.Equal(t, "store GET", recorder.Ended()[0].Name())
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("http.request.method", "GET"), attribute.String("peer.service", "store"), attribute.Int64("http.response.status_code", 404),
	}, recorder.Ended()[0].Attributes())
}

// TestOff checks that a service without a store has ids of traces for its log, and nothing else.
func TestOff(t *testing.T) {
	t.Parallel()

	var lines bytes.Buffer

	log := slog.New(Handler(slog.NewJSONHandler(&lines, nil)))
	ctx, s := Off().Request(t.Context(), fromCaller(), true)

	_, inner := Start(ctx, "statement")
	require.Nil(t, inner)
	inner.Set(Text("a", "b"))
	inner.Name("c")
	inner.End(errors.New("failed"))
	require.False(t, Sent(ctx))

	log.With("a", 1).InfoContext(ctx, "inside")
	log.InfoContext(t.Context(), "outside")
	s.End(nil)

	var inside, outside map[string]any

	decoder := json.NewDecoder(&lines)
	require.NoError(t, decoder.Decode(&inside))
	require.NoError(t, decoder.Decode(&outside))
	require.Equal(t, callerTrace, inside["trace_id"])
	require.NotContains(t, outside, "trace_id")
	require.Empty(t, Parent(t.Context()))
	require.Empty(t, TraceID(t.Context()))
}

// TestShare checks that a trace is sent whole or not at all.
func TestShare(t *testing.T) {
	t.Parallel()

	recorder := tracetest.NewSpanRecorder()
	spans := create(sdktrace.WithSampler(sampler(0.5)), sdktrace.WithSpanProcessor(recorder))
	sent := 0

	for range 400 {
		ctx, request := spans.Request(t.Context(), nil, false)
		_, inner := Start(ctx, "statement")

		require.Equal(t, Sent(ctx), inner != nil)
		inner.End(nil)
		request.End(nil)

		if inner != nil {
			sent++
		}
	}

	require.InDelta(t, 200, sent, 100)
	require.Len(t, recorder.Ended(), 2*sent)
}

func TestHeaders(t *testing.T) {
	t.Parallel()

	headers, err := ParseHeaders("a=b, c=d=e")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "c": "d=e"}, headers)

	_, err = ParseHeaders("secret")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}
