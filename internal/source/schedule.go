package source

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/cron"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// Schedule says when a source runs by itself. The zero Schedule is none.
//
// A slot is a moment at which the clock of the time zone shows a time that the expression matches. Slots that the clock leaves out when it is put forward are one slot at
// the moment of the change. Slots of the hour that comes twice when it is put back are in the first one only.
type Schedule struct {
	Cron     string
	TimeZone string
	Jitter   time.Duration // each source runs later than its slot by a fixed time below this
}

// due is when a source runs next: the slot, and the slot plus the shift. Both are zero if it does not run by itself.
type due struct{ slot, at time.Time }

func (s Schedule) isSet() bool { return s.Cron != "" }

// check refuses a schedule that never runs.
func (s Schedule) check() error {
	if s == (Schedule{}) {
		return nil
	}

	_, _, err := s.parse()

	return err
}

func (s Schedule) parse() (cron.Expression, *time.Location, error) {
	c, problem := cron.Parse(s.Cron)
	if problem != "" {
		return c, nil, fault.Invalid("schedule.cron", problem)
	}

	place, problem := cron.Zone(s.TimeZone)
	if problem != "" {
		return c, nil, fault.Invalid("schedule.timeZone", problem)
	}

	return c, place, nil
}

// shift returns by how much a source runs later than its slots. It depends on the id alone, so it is always the same.
func (s Schedule) shift(source uuid.UUID) time.Duration {
	if s.Jitter < time.Second {
		return 0
	}

	return time.Duration(binary.BigEndian.Uint64(source[8:])%uint64(s.Jitter/time.Second)) * time.Second //nolint:gosec // it is less than the jitter
}

// next returns the first slot after a moment.
func (s Schedule) next(after time.Time, source uuid.UUID) (due, error) {
	if !s.isSet() {
		return due{}, nil
	}

	c, place, err := s.parse()
	if err != nil {
		return due{}, err
	}

	for shown, ok := c.Next(cron.Shows(after, place)); ok; shown, ok = c.Next(shown) {
		if slot := cron.Moment(shown, place).UTC(); slot.After(after) {
			return due{slot, slot.Add(s.shift(source))}, nil
		}
	}

	return due{}, fault.New(fault.ValidationFailed, "The schedule has no further slot.")
}

// plan returns when the source runs next, after now.
func (s Source) plan(now time.Time) (due, error) {
	if s.Status != Active {
		return due{}, nil
	}

	return s.Schedule.next(now, s.ID)
}

// NextRunAt returns when the source runs by itself, and zero if it does not.
func (s Source) NextRunAt() time.Time { return s.next.at }

const (
	// dueEvery is how often each replica looks for slots that have come.
	dueEvery = 5 * time.Second
	// dueAtOnce is how many sources are found at a time.
	dueAtOnce = 100
)

// Follow begins the runs of slots that have come, until ctx ends. Every replica does it, because each slot begins in one transaction.
func (s *Sources) Follow(ctx context.Context) {
	log := job.Limited(s.Log)

	for {
		more, err := s.BeginDue(ctx)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "scheduled runs of sources could not be started", "error", err)
		}

		pause := dueEvery
		if more && err == nil {
			pause = 0
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// BeginDue begins a run of each source whose slot has come. A source whose run is in progress keeps its slot until the run has ended. more reports whether there may be
// further ones.
func (s *Sources) BeginDue(ctx context.Context) (more bool, err error) {
	var found []RunArgs

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = selectDue(ctx, q, s.now(), dueAtOnce)

		return err
	})

	begun := 0

	for _, one := range found {
		isBegun, failed := s.beginSlot(ctx, one)
		err = errors.Join(err, failed)

		if isBegun {
			begun++
		}
	}

	return begun > 0 && len(found) == dueAtOnce, err
}

// beginSlot begins the run of a slot and plans the next one, in one transaction. Slots that were missed are one run.
func (s *Sources) beginSlot(ctx context.Context, of RunArgs) (begun bool, err error) {
	err = s.DB.InTx(ctx, func(tx postgres.Tx) error {
		begun = false

		now := s.now()

		found, err := lockSource(ctx, tx, of.Account, of.Source)
		if err != nil || found == nil || found.next.at.IsZero() || found.next.at.After(now) {
			return err // another replica was faster, or it is no longer wanted
		}

		slot := found.next.slot
		missed := now.Add(-found.Schedule.shift(found.ID))

		if missed.Before(slot) {
			missed = slot
		}

		if found.next, err = found.plan(missed); err != nil {
			return err
		}

		if err := updateNext(ctx, tx, *found); err != nil || found.Status != Active { // stopped by a program that does not know of slots
			return err
		}

		run := Run{ID: uuid.Must(uuid.NewV7()), Status: RunQueued, Slot: slot, CreatedAt: now, account: of.Account, source: of.Source}

		begun, err = insertRun(ctx, tx, run)
		if err != nil || !begun {
			return err
		}

		return s.Jobs().InsertTx(ctx, tx, run.args(), insertOpts())
	})

	if isOpen(err) {
		return false, nil
	}

	return begun && err == nil, err
}

// isOpen reports whether a run could not begin because another one of the source is in progress.
func isOpen(err error) bool {
	index, isViolated := postgres.ViolatesUnique(err)

	return isViolated && index == "source_runs_open"
}
