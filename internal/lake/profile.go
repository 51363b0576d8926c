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

// Profiled is the profile of a table: its objects and the facts about them in the database. It may describe an
// earlier snapshot than the current one if rows were added since, but never if rows were removed.
type Profiled struct {
	Snapshot   uuid.UUID
	Sequence   int64 // sequence of the snapshot
	Rows       int64
	ComputedAt time.Time
	Profile    Object
	Values     Object // value index; Key is empty if there is none
	Summary    json.RawMessage
}

// Join is a probable join: a column that probably has the values of a column of another dataset.
type Join struct {
	Column string
	Other  uuid.UUID // dataset of the same account
	To     string    // column of the other dataset
	Share  float64   // fraction of the values of one column that the other also has
}

// Profiles returns the profiles of the given datasets of an account, without summaries. It omits profiles that may
// show removed values.
func (l *Lake) Profiles(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID]Profiled, error) {
	return selectProfiles(ctx, q, account, datasets, false)
}

// Summaries returns the profiles of the given datasets of an account, with summaries. It omits profiles that may show
// removed values.
func (l *Lake) Summaries(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID]Profiled, error) {
	return selectProfiles(ctx, q, account, datasets, true)
}

// Indexes returns the value indexes of the given datasets of an account. It omits indexes that may show removed
// values.
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

// Joins returns the probable joins of the given datasets of an account, the most probable first.
func (l *Lake) Joins(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]Join, error) {
	return selectJoins(ctx, q, account, datasets)
}

// Unique returns the columns of the given datasets of an account whose values are all different and not null, by their
// profiles.
func (l *Lake) Unique(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]string, error) {
	return selectUnique(ctx, q, account, datasets)
}

// SaveProfileTx replaces the profile of a table and its joins, and records that the chore is done.
//
// Faults: NotFound if the table was removed, or rows were removed since; ErrDropped if writing an object took too
// long.
func (l *Lake) SaveProfileTx(ctx context.Context, tx postgres.Tx, due Due, made Profiled, joins []Join) error {
	// Every writer locks the row of the table first.
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

// RemoveProfileTx removes the profile of a table that has nothing to profile, and records that the chore is done.
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
