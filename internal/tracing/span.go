package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"quern.dev/quern/internal/fault"
)

// Run is the run that a trace describes.
type Run struct {
	TraceID      [16]byte
	ID           string
	Conversation string
	User         string // id of the account; names are not sent, for privacy
	Agent        string
	Question     string
	Began        time.Time
}

// Span is a span of a trace. A span that is not ended is not sent.
type Span struct {
	span    trace.Span
	capture bool
}

// Agent starts the root span of the trace of a run. Only the worker that ends the run must end this span.
func (t *Tracing) Agent(ctx context.Context, run Run) (context.Context, *Span) {
	ctx = context.WithValue(ctx, runKey{}, run)

	return t.begin(ctx, "invoke_agent "+run.Agent, kinds{"invoke_agent", "AGENT", "agent"}, []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithTimestamp(run.Began),
		trace.WithAttributes(attribute.String("gen_ai.agent.name", run.Agent), attribute.String("gen_ai.provider.name", "quern")),
	}, func(s *Span) {
		s.text("input", run.Question)
		s.set("gen_ai.input.messages", message("user", run.Question))
	})
}

// Query starts the span of a statement, which is one attempt at a step.
func (t *Tracing) Query(ctx context.Context, step, attempt int, statement string) *Span {
	_, span := t.begin(ctx, "execute_tool sql", kinds{"execute_tool", "TOOL", "tool"}, []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("gen_ai.tool.name", "sql"), attribute.String("gen_ai.tool.type", "datastore"), attribute.String("tool.name", "sql"),
		attribute.Int("quern.step", step), attribute.Int("quern.attempt", attempt),
	)}, func(s *Span) {
		s.text("input", statement)
		s.set("db.query.text", statement)
		s.set("gen_ai.tool.call.arguments", jsonOf(map[string]string{"query": statement}))
	})

	return span
}

// kinds is the kind of a span in the OpenTelemetry conventions for GenAI, in OpenInference and in Langfuse.
type kinds struct{ operation, openInference, langfuse string }

func (t *Tracing) begin(ctx context.Context, name string, kind kinds, options []trace.SpanStartOption, content func(*Span)) (context.Context, *Span) {
	options = append(options, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", kind.operation),
		attribute.String("openinference.span.kind", kind.openInference),
		attribute.String("langfuse.observation.type", kind.langfuse),
	))

	ctx, span := t.tracer.Start(ctx, name, options...) //nolint:spancheck // whoever gets it ends it
	s := &Span{span: span, capture: t.config.Capture}
	content(s)

	return ctx, s //nolint:spancheck // the same
}

// labels adds the attributes of the run to every span of a run, also to spans that other packages start. Langfuse reads the
// user, session and name of a trace from each of its spans.
type labels struct{}

// OnStart implements sdktrace.SpanProcessor.
func (labels) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	run, ok := ctx.Value(runKey{}).(Run)
	if !ok {
		return
	}

	span.SetAttributes(
		attribute.String("langfuse.trace.name", run.Agent),
		attribute.String("langfuse.trace.metadata.run_id", run.ID),
		attribute.String("gen_ai.conversation.id", run.Conversation),
		attribute.String("session.id", run.Conversation),
		attribute.String("user.id", run.User),
		attribute.String("quern.run.id", run.ID),
	)
}

// OnEnd implements sdktrace.SpanProcessor.
func (labels) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown implements sdktrace.SpanProcessor.
func (labels) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (labels) ForceFlush(context.Context) error { return nil }

// Answered ends the span of an agent with the result of the run.
func (s *Span) Answered(outcome, model, opinion, answer string) {
	s.span.SetAttributes(attribute.String("quern.outcome", outcome), attribute.String("quern.model", model))

	if opinion != "" {
		s.span.SetAttributes(attribute.String("quern.opinion", opinion))
	}

	s.text("output", answer)
	s.set("gen_ai.output.messages", message("assistant", answer))
	s.span.End()
}

// Read ends the span of a statement with the number of its rows.
func (s *Span) Read(rows int64) {
	s.span.SetAttributes(attribute.Int64("db.response.returned_rows", rows))
	s.span.End()
}

// Failed ends a span with an error. It records only the code, because an error message may quote data.
func (s *Span) Failed(code fault.Code) {
	s.span.SetAttributes(attribute.String("error.type", string(code)), attribute.String("langfuse.observation.level", "ERROR"))
	s.span.SetStatus(codes.Error, string(code))
	s.span.End()
}

// text sets the input or output of a span, if Config.Capture is set.
func (s *Span) text(way, value string) {
	s.set(way+".value", value)
	s.set(way+".mime_type", "text/plain")
	s.set("langfuse.observation."+way, jsonOf(value))
}

func (s *Span) set(name, value string) {
	if s.capture {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// message returns a list of one message, in the form of the OpenTelemetry conventions.
func message(role, content string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}

	type said struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}

	return jsonOf([]said{{Role: role, Parts: []part{{Type: "text", Content: content}}}})
}

func jsonOf(value any) string {
	text, _ := json.Marshal(value) //nolint:errchkjson // strings alone

	return string(text)
}

type runKey struct{}

// ids generates the ids of spans: a trace has the id of its run, and the id of its root span is derived from that, so that
// a worker that continues the run uses the same root.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator for root spans.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	run, _ := ctx.Value(runKey{}).(Run)

	return run.TraceID, rootOf(run.TraceID)
}

// NewSpanID implements sdktrace.IDGenerator for all other spans.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:])

	return id
}

func rootOf(id [16]byte) (root trace.SpanID) {
	sum := sha256.Sum256(id[:])
	copy(root[:], sum[:])

	return root
}
