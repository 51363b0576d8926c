package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/span"
)

// tracer records each statement as a span. The text of a statement is a constant of the program; values are parameters, and are not
// recorded.
type tracer struct{}

type tracedKey struct{}

const maxStatement = 2000

// TraceQueryStart implements pgx.QueryTracer.
func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	text := strings.Join(strings.Fields(data.SQL), " ")
	verb, _, _ := strings.Cut(text, " ")

	_, started := span.Start(ctx, "postgres "+strings.ToUpper(verb), span.Text("db.system.name", "postgresql"),
		span.Text("db.query.text", strings.ToValidUTF8(text[:min(len(text), maxStatement)], "")))
	if started == nil {
		return ctx
	}

	return context.WithValue(ctx, tracedKey{}, started)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	started, ok := ctx.Value(tracedKey{}).(*span.Span)
	if !ok {
		return
	}

	if data.Err != nil {
		started.End(Translate(data.Err))

		return
	}

	started.End(nil)
}
