package postgres

import (
	"context"
	"time"
)

// Epoch identifies a copy of a database, to compare it with the object store.
type Epoch struct {
	Deployment string
	Database   string // identifies this copy: a restored dump has a different value
	Number     int64
	Mark       time.Time // time of the last sign that the database is in use
	Bound      bool      // whether a location in the object store is bound to it
}

// Epoch reads the epoch of the database.
func (db *DB) Epoch(ctx context.Context) (e Epoch, err error) {
	err = db.Do(ctx, func(q Querier) error {
		return q.QueryRow(ctx, sqlEpochRead).Scan(&e.Deployment, &e.Database, &e.Number, &e.Mark, &e.Bound)
	})

	return e, err
}

// BindEpoch records that a location (bucket and prefix) belongs to this database.
func (db *DB) BindEpoch(ctx context.Context) error {
	return db.Do(ctx, func(q Querier) error {
		_, err := q.Exec(ctx, sqlEpochBind)

		return err
	})
}

// RaiseEpoch sets an epoch that is higher than the current one and the given one.
func (db *DB) RaiseEpoch(ctx context.Context, above int64) error {
	return db.Do(ctx, func(q Querier) error {
		_, err := q.Exec(ctx, sqlEpochRaise, above)

		return err
	})
}

// MarkEpoch sets Mark to a time not before after, unless Mark is younger than age. It reports whether it did, and
// does nothing if the epoch is not the given one.
func (db *DB) MarkEpoch(ctx context.Context, epoch int64, after time.Time, age time.Duration) (marked bool, err error) {
	err = db.Do(ctx, func(q Querier) error {
		tag, err := q.Exec(ctx, sqlEpochMark, after, epoch, age)
		marked = err == nil && tag.RowsAffected() == 1

		return err
	})

	return marked, err
}
