package agent

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryLog is a Log that keeps its events.
type memoryLog struct {
	Log

	before, written []Event
}

func (l *memoryLog) Before() []Event { return l.before }

func (l *memoryLog) Write(_ context.Context, events ...Event) error {
	l.written = append(l.written, events...)

	return nil
}

// TestAnnounce checks that the events of a statement are written once, and that a worker that takes over writes only those
// that are missing.
func TestAnnounce(t *testing.T) {
	t.Parallel()

	first := statement{index: 1, instruction: "Count.", text: "SELECT 1", attempt: 1}
	second := first
	second.attempt, second.text = 2, "SELECT 2"

	log := &memoryLog{}
	q := &inquiry{recorder: newRecorder(log)}

	for _, s := range []statement{first, first, second} {
		require.NoError(t, q.announce(t.Context(), s))
	}

	want := []Event{
		{EventStepStarted, 1, json.RawMessage(`{"index":1,"instruction":"Count."}`)},
		{EventQueryExecuting, 1, json.RawMessage(`{"attempt":1,"index":1,"query":"SELECT 1"}`)},
		{EventQueryExecuting, 1, json.RawMessage(`{"attempt":2,"index":1,"query":"SELECT 2"}`)},
	}
	require.Equal(t, want, log.written)

	later := &memoryLog{before: want[:2]}
	q = &inquiry{recorder: newRecorder(later)}

	require.NoError(t, q.announce(t.Context(), first))
	require.Empty(t, later.written)
	require.NoError(t, q.announce(t.Context(), second))
	require.Equal(t, want[2:], later.written)
	require.Equal(t, 2, q.recorder.count(EventQueryExecuting, 1))
	require.Zero(t, q.recorder.count(EventQueryExecuting, 0))
}
