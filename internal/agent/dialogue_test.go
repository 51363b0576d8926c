package agent

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/query"
)

// pinningLog is a Log that pins the snapshots that are read. It simulates a race: another step pins the dataset just
// before the first record.
type pinningLog struct {
	Log

	pinned map[uuid.UUID]uuid.UUID
	first  uuid.UUID
}

func (l *pinningLog) Pinned() map[uuid.UUID]uuid.UUID { return l.pinned }

func (l *pinningLog) BeforeRead(_ context.Context, reads []query.Read) error {
	if l.first != uuid.Nil {
		l.pinned[l.first], l.first = uuid.New(), uuid.Nil
	}

	for _, read := range reads {
		if at, isPinned := l.pinned[read.ID]; isPinned && at != read.Snapshot {
			return ErrMoved
		}
	}

	for _, read := range reads {
		l.pinned[read.ID] = read.Snapshot
	}

	return nil
}

// TestNoteQuoted checks that a quote of a dataset that changed meanwhile does not fail a run, and that the other datasets
// are recorded.
func TestNoteQuoted(t *testing.T) {
	t.Parallel()

	before, meanwhile, fresh := uuid.New(), uuid.New(), uuid.New()
	kept := uuid.New()
	log := &pinningLog{pinned: map[uuid.UUID]uuid.UUID{before: kept}, first: meanwhile}

	var reads []query.Read
	for _, id := range []uuid.UUID{before, meanwhile, fresh} {
		reads = append(reads, query.Read{ID: id, Snapshot: uuid.New()})
	}

	require.NoError(t, noteQuoted(t.Context(), log, reads))
	require.Equal(t, kept, log.pinned[before])
	require.Contains(t, log.pinned, meanwhile)
	require.Equal(t, reads[2].Snapshot, log.pinned[fresh])
}
