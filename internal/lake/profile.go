package lake

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Profiled is what the values of a table look like: objects beside it, and what is known of them here. It is of an
// earlier snapshot than the current one if rows were added since, never if rows were taken away.
type Profiled struct {
	Snapshot   uuid.UUID
	Sequence   int64 // of the snapshot
	Rows       int64
	ComputedAt time.Time
	Profile    Object
	Values     Object // without a key if there is none
	Summary    json.RawMessage
}

// Join is a column of a table that probably has the values of a column of another one.
type Join struct {
	Column string
	Other  uuid.UUID // dataset of the same account
	To     string    // its column
	Share  float64   // of the values of the one that the other has too
}

// Profiles returns the profiles of some datasets of an account, without summaries, and without those that may show
// values that are gone.
func (l *Lake) Profiles(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID]Profiled, error) {
	return selectProfiles(ctx, q, account, datasets, false)
}

// Summaries returns the profiles of some datasets of an account without those that may show values that are gone.
func (l *Lake) Summaries(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID]Profiled, error) {
	return selectProfiles(ctx, q, account, datasets, true)
}

// Indexes returns the value indexes of some datasets of an account without those that may show values that are gone.
func (l *Lake) Indexes(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID]Object, error) {
	found, err := selectProfiles(ctx, q, account, datasets, false)
	indexes := make(map[uuid.UUID]Object, len(found))

	for dataset, p := range found {
		if p.Values.Key != "" {
			indexes[dataset] = p.Values
		}
	}

	return indexes, err
}

// Joins returns the probable joins of some datasets of an account, the surest first.
func (l *Lake) Joins(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]Join, error) {
	return selectJoins(ctx, q, account, datasets)
}

// SaveProfileTx puts a profile, with the joins that were found with it, in the place of the one before, and says
// that the chore is done.
//
// Faults: NotFound if the table was removed, or rows were taken away since; ErrDropped if an object took too long.
func (l *Lake) SaveProfileTx(ctx context.Context, tx postgres.Tx, due Due, made Profiled, joins []Join) error {
	// The row of the table is what everybody locks first.
	there, err := updateProfiled(ctx, tx, due.Table, made.Rows, made.Sequence)
	if err == nil && !there {
		err = fault.Absent()
	}

	if err != nil {
		return err
	}

	if err := l.dropProfileTx(ctx, tx, due.Table); err != nil {
		return err
	}

	for _, o := range []Object{made.Profile, made.Values} {
		if o.Key == "" {
			continue
		}

		if err := l.KeepObjectTx(ctx, tx, o); err != nil {
			return err
		}
	}

	if err := insertProfile(ctx, tx, due.Table, made, joins); err != nil {
		return err
	}

	return l.DoneTx(ctx, tx, due)
}

// RemoveProfileTx says that there is nothing to profile.
func (l *Lake) RemoveProfileTx(ctx context.Context, tx postgres.Tx, due Due) error {
	if _, err := updateProfiled(ctx, tx, due.Table, 0, math.MaxInt64); err != nil {
		return err
	}

	if err := l.dropProfileTx(ctx, tx, due.Table); err != nil {
		return err
	}

	return l.DoneTx(ctx, tx, due)
}

func (l *Lake) dropProfileTx(ctx context.Context, tx postgres.Tx, t Table) error {
	keys, err := deleteProfile(ctx, tx, t)
	if err != nil {
		return err
	}

	for _, key := range keys {
		if err := l.DropObjectTx(ctx, tx, t, key); err != nil {
			return err
		}
	}

	return nil
}
