package span

import (
	"context"
	"log/slog"
)

// Handler adds the id of the trace to each record that is logged with the context of a request or a job.
func Handler(next slog.Handler) slog.Handler { return logging{next} }

type logging struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logging) Handle(ctx context.Context, record slog.Record) error {
	if id := TraceID(ctx); id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", id))
	}

	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h logging) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logging{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logging) WithGroup(name string) slog.Handler { return logging{h.Handler.WithGroup(name)} }
