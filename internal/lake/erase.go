package lake

import (
	"context"
	"time"

	"quern.dev/quern/internal/postgres"
)

// EraseTableTx marks a table for removal without a grace period. From then on the dataset cannot be restored, and the next Clean removes all
// objects.
func EraseTableTx(ctx context.Context, tx postgres.Tx, t Table, now time.Time) error {
	if err := eraseTable(ctx, tx, t); err != nil {
		return err
	}

	_, err := beginRemoval(ctx, tx, t, now, now)

	return err
}

// Exists reports whether anything of a table is left.
func Exists(ctx context.Context, q postgres.Querier, t Table) (bool, error) {
	return selectExists(ctx, q, t)
}

// DropCopies removes the local copies of data files that were fetched before a moment. Statements that read one of them now can finish.
func (l *Lake) DropCopies(before time.Time) {
	if l.cache == nil {
		return
	}

	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()

	for _, item := range l.cache.items {
		select {
		case <-item.done:
			if item.err == nil && item.seal.modified.Before(before) {
				l.cache.forget(item)
			}
		default: // is being fetched; the next call finds it
		}
	}
}
