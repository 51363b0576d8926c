package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span is the span of one attempt in the trace of its run. Its attributes follow the conventions of OpenTelemetry for
// GenAI, of OpenInference and of Langfuse. The tracer adds the attributes that all spans of a run have in common.
type span struct {
	trace.Span

	capture bool
	began   time.Time
	heard   bool
}

func (m *Models) span(ctx context.Context, t *turn) (context.Context, *span) {
	name, provider := t.request.Model.Name, string(t.provider.Kind)
	if t.provider.URL != "" {
		provider = t.provider.Name // a compatible server of another vendor
	}

	// Use the tracer provider of the run's span: no other spans of this process are sent there.
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("quern.dev/quern/llm")
	ctx, started := tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", provider),
		attribute.String("gen_ai.request.model", name),
		attribute.Int("gen_ai.request.max_tokens", t.request.MaxTokens),
		attribute.Bool("gen_ai.request.stream", t.tell != nil),
		attribute.String("openinference.span.kind", "LLM"),
		attribute.String("langfuse.observation.type", "generation"),
		attribute.String("llm.model_name", name),
		attribute.String("llm.provider", provider),
		attribute.String("quern.purpose", t.Purpose),
		attribute.String("quern.prompt", promptOf(t.request)),
		attribute.Int("quern.turn", t.number),
		attribute.Int("quern.attempt", t.attempt),
	))

	s := &span{Span: started, capture: m.config.Capture, began: time.Now()}
	s.text("gen_ai.system_instructions", partsOf(t.request.System))
	s.text("gen_ai.input.messages", messagesOf(t.request.Messages))

	if len(t.request.Messages) > 0 {
		s.text("input.value", t.request.Messages[len(t.request.Messages)-1].Text)
	}

	return ctx, s
}

// promptOf returns a hash of the fixed part of a prompt: the system prompt and the schema. It tells versions apart.
func promptOf(request Request) string {
	hash := sha256.New()
	hash.Write([]byte(request.System))

	if request.Schema != nil {
		hash.Write(request.Schema.JSON)
	}

	return hex.EncodeToString(hash.Sum(nil))[:12]
}

// first records the time to the first part of a stream. It is called for each part.
func (s *span) first() {
	if !s.heard {
		s.heard = true
		s.SetAttributes(attribute.Float64("gen_ai.response.time_to_first_chunk", time.Since(s.began).Seconds()))
	}
}

func (s *span) answered(answer Response) {
	s.SetAttributes(attribute.String("gen_ai.response.id", answer.ID), attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(answer.Finish)}))
	s.text("gen_ai.output.messages", messagesOf([]Message{{Role: Assistant, Text: answer.Text}}))
	s.text("output.value", answer.Text)
	s.count(answer.Usage)
	s.End()
}

func (s *span) failed(why *failure, answer Response) {
	s.SetAttributes(attribute.String("error.type", why.class), attribute.String("langfuse.observation.level", "ERROR"))
	s.SetStatus(codes.Error, why.class)
	s.count(answer.Usage)
	s.End()
}

func (s *span) count(u Usage) {
	s.SetAttributes(
		attribute.Int64("gen_ai.usage.input_tokens", u.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", u.OutputTokens),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CachedTokens), attribute.Int64("gen_ai.usage.reasoning.output_tokens", u.Reasoning),
		attribute.Int64("llm.token_count.prompt", u.InputTokens), attribute.Int64("llm.token_count.completion", u.OutputTokens),
		attribute.Int64("llm.token_count.total", u.InputTokens+u.OutputTokens),
	)
}

// longestText is the maximum length of a text in a span, in bytes.
const longestText = 64 << 10

func (s *span) text(name, value string) {
	if s.capture {
		s.SetAttributes(attribute.String(name, strings.ToValidUTF8(value[:min(len(value), longestText)], "")))
	}
}

type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

func partsOf(text string) string { return jsonOf([]part{{"text", text}}) }

func messagesOf(list []Message) string {
	type spoken struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}

	all := []spoken{}
	for _, one := range list {
		all = append(all, spoken{string(one.Role), []part{{"text", one.Text}}})
	}

	return jsonOf(all)
}

func jsonOf(value any) string {
	text, _ := json.Marshal(value) //nolint:errchkjson // strings alone

	return string(text)
}
