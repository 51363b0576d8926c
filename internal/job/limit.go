package job

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

const (
	// repeatEvery is how often a repeating error is logged.
	repeatEvery = time.Minute
	// repeatOver is how long an error must not occur until it counts as over.
	repeatOver = 10 * time.Second
	// repeatCauses limits the number of causes that are remembered. Records of further causes are not limited.
	repeatCauses = 1000
	causeLength  = 300
)

// Limited returns a log for work that is retried again and again. It logs a warning or error with the same message
// and the same cause once a minute, with the number of records left out. When the error has not occurred for a while,
// one line reports how long it lasted.
func Limited(log *slog.Logger) *slog.Logger {
	return slog.New(limited{log.Handler(), &repeats{streaks: map[string]*streak{}}})
}

type limited struct {
	slog.Handler

	repeats *repeats
}

// Handle drops a record that was logged less than a minute ago.
func (h limited) Handle(ctx context.Context, record slog.Record) error {
	cause := causeOf(record)
	if record.Level < slog.LevelWarn || cause == "" {
		return h.Handler.Handle(ctx, record)
	}

	later := context.WithoutCancel(ctx)

	leftOut, told := h.repeats.count(cause, func(s streak) { h.over(later, record.Message, s) })
	if !told {
		return nil
	}

	if leftOut > 0 {
		record = record.Clone()
		record.Add("left_out", leftOut)
	}

	return h.Handler.Handle(ctx, record)
}

// over logs that an error has stopped, if records were left out.
func (h limited) over(ctx context.Context, message string, s streak) {
	if s.total == 0 || !h.Enabled(ctx, slog.LevelInfo) {
		return
	}

	record := slog.NewRecord(time.Now(), slog.LevelInfo, "a repeated error has stopped", 0)
	record.Add("message", message, "duration", s.last.Sub(s.first).Round(time.Millisecond).String(), "left_out", s.total)
	_ = h.Handler.Handle(ctx, record) // a failing log cannot be logged
}

// WithAttrs keeps the limit.
func (h limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{h.Handler.WithAttrs(attrs), h.repeats}
}

// WithGroup keeps the limit.
func (h limited) WithGroup(name string) slog.Handler {
	return limited{h.Handler.WithGroup(name), h.repeats}
}

// varying matches what differs between errors of one cause: ports, process ids, times.
var varying = regexp.MustCompile(`[0-9]+`)

// causeOf returns the cause of a record, or "" for a record without an error.
func causeOf(record slog.Record) (cause string) {
	kind := ""

	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "err", "error":
			cause = a.Value.String()
		case "kind", "job_kind":
			kind = a.Value.String()
		}

		return true
	})

	if cause == "" {
		return ""
	}

	cause = varying.ReplaceAllString(cause, "#")

	return record.Message + "\n" + kind + "\n" + cause[:min(len(cause), causeLength)]
}

// repeats contains the errors that currently repeat.
type repeats struct {
	mu      sync.Mutex
	streaks map[string]*streak
}

type streak struct {
	first, told, last time.Time
	leftOut, total    int // since the last logged record; in all
	end               *time.Timer
}

// count returns whether a record of the cause is logged now, and how many were left out before. It calls over when the cause has not occurred
// for a while.
func (r *repeats) count(cause string, over func(streak)) (leftOut int, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	now, s := time.Now(), r.streaks[cause]

	switch {
	case s == nil && len(r.streaks) >= repeatCauses:
		return 0, true
	case s == nil:
		s = &streak{first: now, told: now, last: now}
		s.end = time.AfterFunc(repeatOver, func() { r.end(cause, s, over) })
		r.streaks[cause] = s

		return 0, true
	}

	s.last = now
	s.end.Reset(repeatOver)

	if now.Sub(s.told) < repeatEvery {
		s.leftOut++
		s.total++

		return 0, false
	}

	leftOut, s.leftOut, s.told = s.leftOut, 0, now

	return leftOut, true
}

func (r *repeats) end(cause string, s *streak, over func(streak)) {
	r.mu.Lock()

	if time.Since(s.last) < repeatOver { // the error occurred while the timer fired
		s.end.Reset(repeatOver)
		r.mu.Unlock()

		return
	}

	delete(r.streaks, cause)
	ended := *s
	r.mu.Unlock()

	over(ended)
}
