package source

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/postgres"
)

// Change is a change of a source. What is nil stays.
type Change struct {
	Active   *bool     // false pauses it; true resumes one that is paused or stopped
	Schedule *Schedule // the zero Schedule removes it

	// What and how a source of files loads. A run in progress continues as it began.
	Prefix, Pattern  *string
	Paths            *[]string // of a source of addresses, instead of prefix and pattern
	Options          *ingest.Options
	Changed, Deleted *Policy
	Accept           *[]string // also of a source of rows
}

// apply changes what and how the source loads. It returns ValidationFailed for what its kind does not have.
func (c Change) apply(to *Source) error {
	if to.Rows != nil && (c.Prefix != nil || c.Pattern != nil || c.Paths != nil || c.Options != nil || c.Changed != nil || c.Deleted != nil) {
		return fault.New(fault.ValidationFailed, "The source loads rows of a database: prefix, pattern, paths, options, changed and deleted are only for a source of files.")
	}

	if to.Table != nil && (c.Prefix != nil || c.Pattern != nil || c.Paths != nil || c.Options != nil || c.Changed != nil || c.Deleted != nil || c.Accept != nil) {
		return fault.New(fault.ValidationFailed, "The source attaches a table as it is: prefix, pattern, paths, options, changed, deleted and accept are only for a source that loads.")
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
// Faults: NotFound, Forbidden, ValidationFailed.
func (s *Sources) Update(ctx context.Context, who auth.Principal, id uuid.UUID, c Change) (Source, error) {
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
	})
	if err != nil {
		return Source{}, err
	}

	return s.withOpen(ctx, changed)
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
