package lake

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

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

// EraseHistory deletes all snapshots of a table but the current one, and its profile, without a grace period. The next Clean removes the objects that only they
// needed. The profile is computed again by the next maintenance. Files that are staged under abandoned ids, and derived objects that are being written, are
// dropped, so the caller must prevent their writers. It is safe to interrupt.
func (l *Lake) EraseHistory(ctx context.Context, t Table, abandoned ...uuid.UUID) error {
	for try := 1; ; try++ {
		err := l.expireTable(ctx, t, l.now(), 0)
		if err == nil {
			break
		}

		if !errors.Is(err, errLost) && !errors.Is(err, errChanged) || try == historyTries {
			return err
		}
	}

	return l.db.InTx(ctx, func(tx postgres.Tx) error {
		if _, err := deleteProfile(ctx, tx, t); err != nil {
			return err
		}

		for _, id := range abandoned {
			if err := l.DropTx(ctx, tx, t, id); err != nil {
				return err
			}
		}

		return eraseHistory(ctx, tx, t, l.now())
	})
}

// historyTries is how often EraseHistory begins again if somebody commits meanwhile.
const historyTries = 10

// Exists reports whether anything of a table is left.
func Exists(ctx context.Context, q postgres.Querier, t Table) (bool, error) {
	return selectExists(ctx, q, t)
}

// DropCopies removes the local copies of data files that were fetched before a moment. A copy in use is removed when its last user leaves.
func (l *Lake) DropCopies(before time.Time) {
	if l.cache == nil {
		return
	}

	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()

	for _, item := range l.cache.items {
		select {
		case <-item.done:
			switch {
			case item.err != nil || !item.seal.modified.Before(before):
			case item.users > 0:
				item.isDropped = true
			default:
				l.cache.forget(item)
			}
		default: // is being fetched; the next call finds it
		}
	}
}
