package job

import (
	"context"
	"errors"
	"log/slog"

	"github.com/riverqueue/river/rivershared/startstop"
)

// calm lowers the level of records that River logs because it is stopping. A River service that is stopped while it
// waits to start still runs its first statement, and logs the cancelled statement as an error.
type calm struct{ slog.Handler }

// Handle lowers the level of a record whose context was ended by River's stop.
func (h calm) Handle(ctx context.Context, record slog.Record) error {
	if errors.Is(context.Cause(ctx), startstop.ErrStop) {
		record.Level = min(record.Level, slog.LevelDebug)
	}

	if !h.Enabled(ctx, record.Level) {
		return nil
	}

	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps lowering levels.
func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{h.Handler.WithAttrs(attrs)} }

// WithGroup keeps lowering levels.
func (h calm) WithGroup(name string) slog.Handler { return calm{h.Handler.WithGroup(name)} }
