package lake

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Chore is work for a table besides its commits, done by and by.
type Chore string

const (
	// Profile is due when a table has been quiet for a while, or has grown by a tenth since the last one.
	Profile Chore = "profile"
	// Compact is due when a table has many files.
	Compact Chore = "compact"
)

// patientFor is how long commits that come again and again can put off a profile.
const patientFor = time.Hour

// Due is a chore whose time has come.
type Due struct {
	Table    Table
	Chore    Chore
	Snapshot uuid.UUID // the latest that asks for it
}

// Due returns some of the chores whose time has come, those first that wait longest.
func (l *Lake) Due(ctx context.Context, q postgres.Querier, chore Chore, limit int) ([]Due, error) {
	return selectDue(ctx, q, chore, l.now(), limit)
}

// PutOffTx lets a chore wait, for one that failed.
func (l *Lake) PutOffTx(ctx context.Context, tx postgres.Tx, due Due, lasting time.Duration) error {
	return updateDue(ctx, tx, due, l.now().Add(lasting))
}

// DoneTx says that a chore was done for a snapshot. If a later one asks for it too it stays due.
func (l *Lake) DoneTx(ctx context.Context, tx postgres.Tx, due Due) error {
	return deleteDue(ctx, tx, due, l.now())
}
