package job

import (
	"context"
	"errors"
	"log/slog"

	"github.com/riverqueue/river/rivershared/startstop"
)

// calm lowers what River says of a service that it stops itself: one that is stopped while it waits for its
// turn to begin tries its first statement all the same, and calls it an error that it was not let.
type calm struct{ slog.Handler }

// Handle lowers the record if the context it came with was ended by River's stop.
func (h calm) Handle(ctx context.Context, record slog.Record) error {
	if errors.Is(context.Cause(ctx), startstop.ErrStop) {
		record.Level = min(record.Level, slog.LevelDebug)
	}

	if !h.Enabled(ctx, record.Level) {
		return nil
	}

	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the handler calm.
func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{h.Handler.WithAttrs(attrs)} }

// WithGroup keeps the handler calm.
func (h calm) WithGroup(name string) slog.Handler { return calm{h.Handler.WithGroup(name)} }
