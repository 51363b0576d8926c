// Package audit records what happened: who did what to which thing, when and from where. An entry is
// written in the transaction of the change it tells of, so neither exists without the other.
//
// Entries belong to the account that they happened to, and are partitioned by month.
package audit

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Operator is the actor of commands that are run on the database.
const Operator = "operator"

// Entry is one thing that happened.
type Entry struct {
	Account   uuid.UUID // to whom it happened
	At        time.Time
	ActorID   uuid.UUID // uuid.Nil for the operator
	Actor     string    // username, or Operator
	Token     uuid.UUID // the API token that was used, or uuid.Nil
	Address   string
	RequestID string
	Action    string // noun.verb, for example token.create
	Target    string
	Outcome   string // Done unless said otherwise
}

// Done is the outcome of a change that was made.
const Done = "done"

// WriteTx adds an entry to the transaction of the change.
func WriteTx(ctx context.Context, tx postgres.Tx, entry Entry) error {
	if entry.Outcome == "" {
		entry.Outcome = Done
	}

	return insert(ctx, tx, entry)
}

// monthsAhead partitions exist beyond the current one, so a service that is stopped for a while finds
// them when it starts.
const monthsAhead = 3

// Prepare makes the partitions of this month and the coming ones. Entries that had to go to the default
// partition meanwhile are moved. It is safe to call at any time, by any replica.
func Prepare(ctx context.Context, db *postgres.DB, now time.Time) error {
	month := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)

	var problems []error

	for i := range monthsAhead + 1 {
		problems = append(problems, db.InTx(ctx, func(tx postgres.Tx) error {
			return makePartition(ctx, tx, month.AddDate(0, i, 0))
		}))
	}

	return errors.Join(problems...)
}
