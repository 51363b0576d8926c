package source

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/postgres"
)

// Change is a change of a source. What is nil stays.
type Change struct {
	Active   *bool     // false pauses it; true resumes one that is paused or stopped
	Schedule *Schedule // the zero Schedule removes it

	// Connection is another connection of the same kind, for a source of files.
	Connection *uuid.UUID

	// What and how a source of files loads. A run in progress continues as it began.
	Prefix, Pattern  *string
	Paths            *[]string // of a source of addresses, instead of prefix and pattern
	Options          *ingest.Options
	Changed, Deleted *Policy
	Accept           *[]string // also of a source of rows
}

// apply changes what and how the source loads. It returns ValidationFailed for what its kind does not have.
func (c Change) apply(to *Source) error {
	if to.Rows != nil && (c.Connection != nil || c.Prefix != nil || c.Pattern != nil || c.Paths != nil || c.Options != nil || c.Changed != nil || c.Deleted != nil) {
		return fault.New(fault.ValidationFailed, "The source loads rows of a database: connectionId, prefix, pattern, paths, options, changed and deleted are only for a source of files.")
	}

	if to.Table != nil && (c.Connection != nil || c.Prefix != nil || c.Pattern != nil || c.Paths != nil || c.Options != nil || c.Changed != nil || c.Deleted != nil || c.Accept != nil) {
		return fault.New(fault.ValidationFailed, "The source attaches a table as it is: connectionId, prefix, pattern, paths, options, changed, deleted and accept are only for a source that loads.")
	}

	hasPaths := len(to.Paths) > 0

	switch {
	case hasPaths && (c.Prefix != nil || c.Pattern != nil):
		return fault.New(fault.ValidationFailed, "The source loads files behind addresses: it has paths, and prefix and pattern are only for a bucket.")
	case !hasPaths && c.Paths != nil:
		return fault.New(fault.ValidationFailed, "Only a source that loads files behind addresses has paths.")
	case c.Paths != nil:
		if err := checkPaths(*c.Paths); err != nil {
			return err
		}

		to.Paths = *c.Paths
	}

	to.Prefix, to.Pattern, to.Options = or(c.Prefix, to.Prefix), or(c.Pattern, to.Pattern), or(c.Options, to.Options)
	to.Changed, to.Deleted, to.Accept = or(c.Changed, to.Changed), or(c.Deleted, to.Deleted), or(c.Accept, to.Accept)

	if c.Options != nil {
		if err := checkOptions(*c.Options); err != nil {
			return err
		}
	}

	return checkPattern(to.Pattern)
}

func or[T any](wanted *T, was T) T {
	if wanted != nil {
		return *wanted
	}

	return was
}

// Update changes a source, and returns it with its open files. A resumed source acts for the credential of the caller. Slots that passed while it was not active are left out.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict for another connection while a run is in progress.
func (s *Sources) Update(ctx context.Context, who auth.Principal, id uuid.UUID, c Change) (Source, error) {
	var (
		target   connection.Connection
		unusable error // told after what is wrong with the source
	)

	if c.Connection != nil {
		target, unusable = s.Connections.Get(ctx, who, *c.Connection)
	}

	changed, err := s.change(ctx, who, id, "source.update", func(tx postgres.Tx, now *Source) error {
		was := now.Status

		switch {
		case c.Active == nil:
		case *c.Active:
			now.Status, now.Stop, now.token = Active, Stop{}, tokenOf(who)
		default:
			now.Status = Paused
		}

		if c.Schedule != nil {
			if err := c.Schedule.check(); err != nil {
				return err
			}

			now.Schedule = *c.Schedule
		}

		if c.Schedule != nil || now.Status != was {
			next, err := now.plan(s.now())
			if err != nil {
				return err
			}

			now.next = next
		}

		if err := c.apply(now); err != nil {
			return err
		}

		if unusable != nil {
			return orNoConnection(unusable)
		}

		return c.storeTx(ctx, tx, now, target)
	})
	if err != nil {
		return Source{}, err
	}

	return s.withOpen(ctx, changed)
}

// storeTx stores what the source is after the change. target is the other connection, if there is one.
func (c Change) storeTx(ctx context.Context, tx postgres.Tx, now *Source, target connection.Connection) error {
	if c.Connection != nil {
		if err := move(ctx, tx, now, target); err != nil {
			return err
		}
	}

	if c.Options != nil {
		if err := retryFailed(ctx, tx, *now); err != nil {
			return err
		}
	}

	for _, store := range []func(ctx context.Context, tx postgres.Tx, s Source) error{updateStatus, updateSchedule, updateFiles} {
		if err := store(ctx, tx, *now); err != nil {
			return err
		}
	}

	return nil
}

// move lets a source of files read from another connection. Its files stay known by their paths and ETags, so those that are the same there are not loaded again.
func move(ctx context.Context, tx postgres.Tx, now *Source, to connection.Connection) error {
	kind := connection.KindS3
	if len(now.Paths) > 0 {
		kind = connection.KindHTTPS
	}

	switch {
	case to.ID == now.Connection:
		return nil
	case to.Kind != kind:
		return fault.Invalid("connectionId", fmt.Sprintf("must be a connection of the kind %s, as the source has; this one is of the kind %s", kind, to.Kind))
	case now.LastRun != nil && now.LastRun.FinishedAt.IsZero(): // it would record what the other server says about files
		return fault.New(fault.Conflict, "A run of this source is in progress. Change the connection when it has ended; a source that is paused ends its run before the next file.")
	}

	now.Connection = to.ID

	return forgetValidators(ctx, tx, *now)
}

// change changes a source of the caller in a transaction, with an audit entry.
func (s *Sources) change(ctx context.Context, who auth.Principal, id uuid.UUID, action string, do func(tx postgres.Tx, now *Source) error) (changed Source, err error) {
	if err := mayRead(who); err != nil {
		return Source{}, err
	}

	err = s.DB.InTx(ctx, func(tx postgres.Tx) error {
		if changed, err = present(lockSource(ctx, tx, who.Account, id)); err != nil {
			return err
		}

		if err := who.RequireEditor(); err != nil {
			return err
		}

		if err := do(tx, &changed); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, s.now(), action, changed.audit()))
	})
	if err != nil {
		return Source{}, err
	}

	return changed, nil
}
