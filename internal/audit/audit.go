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
	ID        uuid.UUID
	Account   uuid.UUID // to whom it happened
	At        time.Time
	ActorID   uuid.UUID // uuid.Nil for the operator
	Actor     string    // username, or Operator
	Token     uuid.UUID // the API token that was used, or uuid.Nil
	Address   string
	RequestID string
	Action    string // noun.verb, for example token.create
	Target    Target
	Detail    string // what else tells two such entries apart, for example whom something was shared with
	Outcome   string // Done unless said otherwise
}

// Target is the thing that it happened to, by id and by the names that it had then.
type Target struct {
	Kind      string // account, token, namespace, dataset
	ID        string
	Namespace string
	Dataset   string
}

// Done is the outcome of a change that was made.
const Done = "done"

// WriteTx adds an entry to the transaction of the change.
func WriteTx(ctx context.Context, tx postgres.Tx, entry Entry) error {
	// Entries of one moment stand in the order in which they were written, which their ids know.
	entry.ID, entry.At = uuid.Must(uuid.NewV7()), entry.At.UTC().Truncate(time.Millisecond)

	if entry.Outcome == "" {
		entry.Outcome = Done
	}

	return insert(ctx, tx, entry)
}

// Position is the place of an entry in an account's list.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Log is what is written.
type Log struct {
	DB *postgres.DB
}

// List returns what happened to an account, newest first, those after the given one. The zero Position
// is the beginning of the list, and as next its end.
func (l Log) List(ctx context.Context, account uuid.UUID, after Position, limit int) (list []Entry, next Position, err error) {
	if after == (Position{}) {
		after = Position{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	}

	err = l.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectEntries(ctx, q, account, after, limit+1)

		return err
	})

	if len(list) > limit {
		list = list[:limit]
		next = Position{At: list[limit-1].At, ID: list[limit-1].ID}
	}

	return list, next, err
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
