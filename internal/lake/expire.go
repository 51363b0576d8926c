package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

const (
	expireTables    = 200
	expireSnapshots = 1000 // per table and transaction
)

// Expire deletes snapshots that stopped being current longer than age ago, or longer than the grace period if that is
// more. Objects that only they need are removed after the grace period. Several processes may run it at once, and it
// is safe to interrupt. An error of one table is logged and does not stop the others.
func (l *Lake) Expire(ctx context.Context, age time.Duration) error {
	before := l.now().Add(-max(age, l.deleteGrace))

	for after := (superseded{}); ; {
		var due []superseded

		err := l.db.Do(ctx, func(q querier) (err error) {
			due, err = selectSuperseded(ctx, q, before, after, expireTables)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, s := range due {
			err := l.expireTable(ctx, s.table, before, l.deleteGrace)

			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, errLost): // tried again at the next call
			case err != nil:
				l.log.ErrorContext(ctx, "expired snapshots of a table cannot be removed", "dataset", s.table.Dataset, "error", err)
			}
		}

		after = due[len(due)-1]
	}
}

func (l *Lake) expireTable(ctx context.Context, t Table, before time.Time, grace time.Duration) error {
	for {
		e := &expiry{table: t, grace: grace}

		err := l.db.Do(ctx, func(q querier) (err error) {
			if e.base, err = selectState(ctx, q, t); err == nil {
				e.oldest, err = selectOldest(ctx, q, t, before, expireSnapshots)
			}

			return err
		})
		if err != nil || e.oldest == nil || e.base == nil || e.base.removed || e.base.current == nil {
			return err
		}

		if err := l.expireMetadata(ctx, e); err != nil {
			return err
		}

		if err := l.expire(ctx, e); err != nil {
			return err
		}
	}
}

// expiry is a prepared deletion of all snapshots that are older than a given one.
type expiry struct {
	table    Table
	grace    time.Duration // how long objects that are no longer needed are kept
	base     *state
	oldest   *entry // oldest snapshot that is kept
	written  []object
	location string // address of the new metadata; empty if Iceberg's metadata lists none of the deleted snapshots
	retired  string // key of the metadata that is replaced
}

// expireMetadata prepares metadata that lists none of the deleted snapshots, so that no reader finds a snapshot whose
// files are removed.
func (l *Lake) expireMetadata(ctx context.Context, e *expiry) error {
	key, err := l.keyOf(e.base.location)
	if err != nil {
		return err
	}

	known, err := l.recallMetadata(ctx, key)
	if err != nil {
		return err
	}

	if known.CurrentSnapshot != e.base.current.Number {
		return errChanged
	}

	old := func(s tableSnapshot) bool { return s.Sequence < e.oldest.Sequence }
	if !slices.ContainsFunc(known.Snapshots, old) {
		return nil
	}

	metadata := *known
	metadata.MetadataLog = []metadataLogEntry{{e.base.location, known.Updated}}
	metadata.Updated = max(known.Updated, l.now().UnixMilli())
	metadata.Refs = maps.Clone(known.Refs)
	metadata.Snapshots = slices.DeleteFunc(slices.Clone(known.Snapshots), old)

	if err := metadata.expire(len(metadata.Snapshots)); err != nil {
		return err
	}

	content, err := json.Marshal(metadata)
	if err != nil {
		return err
	}

	id := uuid.Must(uuid.NewV7())
	name := fmt.Sprintf("/metadata/%05d-%s.metadata.json", e.base.current.Sequence, id)
	e.written = []object{{id: id, key: tableKey(e.table) + name, content: content, decoded: &metadata}}
	e.location, e.retired = l.base+e.written[0].key, key

	return nil
}

// expire writes the new metadata, then makes all other changes in one transaction.
func (l *Lake) expire(ctx context.Context, e *expiry) error {
	if len(e.written) > 0 {
		err := l.db.Do(ctx, func(q querier) error { return insertWritten(ctx, q, e.table, e.written, l.now().Add(commitTime)) })
		if err != nil {
			return err
		}

		if err := l.write(ctx, e.written); err != nil {
			return err
		}
	}

	err := l.db.InTx(ctx, func(tx postgres.Tx) error {
		done, err := expireRows(ctx, tx, *e, l.now().Add(e.grace))
		if err == nil && !done {
			err = errLost
		}

		return err
	})
	if err == nil && len(e.written) > 0 {
		l.known.put(e.written[0].key, e.written[0].decoded, decoded*int64(len(e.written[0].content)))
	}

	return err
}
