package lake

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Chore is a kind of maintenance of a table.
type Chore string

const (
	// Profile is due at once after the first commit of a table, and one quiet period after a later commit. Further commits postpone it, up
	// to patientFor, unless the table has grown by a tenth since the last profile.
	Profile Chore = "profile"
	// Compact is due when a commit leaves at least compactFrom files.
	Compact Chore = "compact"
)

// patientFor is how long repeated commits can postpone a profile.
const patientFor = time.Hour

// Due is a chore that is due.
type Due struct {
	Table    Table
	Chore    Chore
	Snapshot uuid.UUID // latest snapshot that made it due
}

// Due returns chores that are due, at most limit, those that are due longest first.
func (l *Lake) Due(ctx context.Context, q postgres.Querier, chore Chore, limit int) ([]Due, error) {
	return selectDue(ctx, q, chore, l.now(), limit)
}

// PutOffTx postpones a chore that failed.
func (l *Lake) PutOffTx(ctx context.Context, tx postgres.Tx, due Due, lasting time.Duration) error {
	return updateDue(ctx, tx, due, l.now().Add(lasting))
}

// GiveUpTx records that a chore cannot be done for a snapshot until somebody acts. If a later snapshot needs it, or it was asked for again after begun, the chore stays due.
func (l *Lake) GiveUpTx(ctx context.Context, tx postgres.Tx, due Due, begun time.Time) error {
	return deleteHopeless(ctx, tx, due, begun)
}

// AskProfileTx makes the profile of the current snapshot of a table due, if it has none and is not waiting for one.
func (l *Lake) AskProfileTx(ctx context.Context, tx postgres.Tx, t Table) error {
	return askProfile(ctx, tx, t, l.now())
}

// DoneTx records that a chore was done for a snapshot. If a later snapshot also needs it, the chore stays due.
func (l *Lake) DoneTx(ctx context.Context, tx postgres.Tx, due Due) error {
	return deleteDue(ctx, tx, due, l.now())
}
