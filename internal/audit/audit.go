// Package audit records who did what to which target, when and from where. An entry is written in the same
// transaction as the change that it describes, so neither exists without the other.
//
// Entries belong to the account that the change affected, and are partitioned by month.
package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Operator is the actor of commands that operators run on the database.
const Operator = "operator"

// Entry is one audit entry.
type Entry struct {
	ID        uuid.UUID
	Account   uuid.UUID // the account that was affected
	At        time.Time
	ActorID   uuid.UUID // uuid.Nil for the operator
	Actor     string    // username, or Operator
	Token     uuid.UUID // the API token that was used, or uuid.Nil
	Address   string
	RequestID string
	Action    string // noun.verb, for example token.create
	Target    Target
	Detail    string // further detail that distinguishes such entries, for example the grantee of a share
	Outcome   string // Done if empty
}

// Target is the object of an action, by id and by the names that it had at that time.
type Target struct {
	Kind      string // account, token, namespace, dataset
	ID        string
	Namespace string
	Dataset   string
}

// Done is the outcome of a change that was made.
const Done = "done"

// WriteTx writes entries in the transaction of the change.
func WriteTx(ctx context.Context, tx postgres.Tx, entries ...Entry) error {
	for i := range entries {
		// Entries with the same time are ordered by their ids, which rise in the order of writing.
		entries[i].ID, entries[i].At = uuid.Must(uuid.NewV7()), entries[i].At.UTC().Truncate(time.Millisecond)

		if entries[i].Outcome == "" {
			entries[i].Outcome = Done
		}
	}

	return insert(ctx, tx, entries)
}

// Position is the position of an entry in the list of an account.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Log reads the audit entries.
type Log struct {
	DB *postgres.DB
}

// Filter selects entries. The zero Filter selects all.
type Filter struct {
	Namespace string // only targets in this namespace, by the name that it had then
	Dataset   string // only this dataset of the namespace, and the namespace as a whole
	Changes   bool   // no reads
}

func (f Filter) selects(e Entry) bool {
	return (f.Namespace == "" || strings.EqualFold(e.Target.Namespace, f.Namespace)) &&
		(f.Dataset == "" || e.Target.Dataset == "" || strings.EqualFold(e.Target.Dataset, f.Dataset)) &&
		(!f.Changes || !isRead(e.Action))
}

// isRead reports whether an action only looked. An export is no read, because it takes the rows away.
func isRead(action string) bool {
	return slices.Contains([]string{"profile.get", "query.link", "query.run", "records.read", "rows.list", "run.read", "setAside.read", "step.read"}, action)
}

// A page of a filtered list comes from so many entries at most, so that a rare entry in a long log does not hold a
// connection for long.
const (
	chunk  = 1000
	chunks = 20
)

// List returns the entries of an account, newest first, starting after the given position. The zero Position is the
// start of the list; a zero next means that no entries follow. With a filter, a page may be short although entries follow.
func (l Log) List(ctx context.Context, account uuid.UUID, filter Filter, after Position, limit int) (list []Entry, next Position, err error) {
	if after == (Position{}) {
		after = Position{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	}

	size := limit + 1
	if filter != (Filter{}) {
		size = chunk
	}

	for range chunks {
		var read []Entry

		if err := l.DB.Do(ctx, func(q postgres.Querier) error {
			read, err = selectEntries(ctx, q, account, after, size)

			return err
		}); err != nil {
			return nil, Position{}, err
		}

		for _, e := range read {
			if !filter.selects(e) {
				continue
			}

			if len(list) == limit {
				return list, positionOf(list[limit-1]), nil
			}

			list = append(list, e)
		}

		if len(read) < size {
			return list, Position{}, nil
		}

		after = positionOf(read[size-1])
	}

	return list, after, nil
}

func positionOf(e Entry) Position { return Position{At: e.At, ID: e.ID} }

// monthsAhead is the number of partitions after the partition of the current month. A service that was stopped for a while
// still has a partition when it starts.
const monthsAhead = 3

// Prepare creates the partitions of the current month and the next ones. It moves entries from the default partition
// into them. Any replica may call it at any time.
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

// Write writes an entry in a transaction of its own, for an action that changed nothing.
func (l Log) Write(ctx context.Context, entry Entry) error {
	return l.DB.InTx(ctx, func(tx postgres.Tx) error { return WriteTx(ctx, tx, entry) })
}
