package run

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/tracing"
)

// Feedback is the rating of a run by the caller who asked.
type Feedback struct {
	ThumbsUp bool
	Comment  string
	At       time.Time
}

// opinion is a revision of the feedback. A revision is sent to the tracing store before it is recorded. Sending holds no
// lock: the rows record what the store may have received, and the repair uses them.
//
//	        insertOpinion          the store accepted
//	request ─────────────▶ sending ───────────────────▶ recorded: in force until the next revision is recorded
//	                          └──────────────────────▶ refused: the store may have it and must be repaired
//	                           502, or the process died
type opinion struct {
	account  uuid.UUID
	run      uuid.UUID
	revision int64
	trace    [16]byte
	state    string
	up       *bool // nil means withdrawn
	comment  string
	sent     bool
	checkAt  *time.Time // when the store must be checked; nil if its content is certain
	at       time.Time
}

const (
	stateSending  = "sending"
	stateRecorded = "recorded"

	// sendTime is longer than any attempt to send.
	sendTime = 15 * time.Second
	// restTime is the pause after a repair that the store did not accept.
	restTime     = 15 * time.Second
	repairAtOnce = 100
)

// Rate records a rating of a completed run, and replaces an earlier rating.
//
// Faults: NotFound, RunNotCompleted, UpstreamUnavailable. With a fault nothing is recorded.
func (r *Runs) Rate(ctx context.Context, who auth.Principal, run uuid.UUID, up bool, comment string) error {
	return r.submit(ctx, who, run, "feedback.submit", opinion{up: &up, comment: comment})
}

// Withdraw withdraws the caller's rating.
//
// Faults: NotFound, also if there is no rating; UpstreamUnavailable: the rating stays in force.
func (r *Runs) Withdraw(ctx context.Context, who auth.Principal, run uuid.UUID) error {
	if _, err := r.Feedback(ctx, who, run); err != nil {
		return err
	}

	return r.submit(ctx, who, run, "feedback.withdraw", opinion{})
}

// Feedback returns the rating in force.
//
// Faults: NotFound, also if there is no rating.
func (r *Runs) Feedback(ctx context.Context, who auth.Principal, run uuid.UUID) (Feedback, error) {
	found, err := r.own(ctx, who, run)
	if err != nil {
		return Feedback{}, err
	}

	rating, err := r.rated(ctx, found)
	if err != nil {
		return Feedback{}, err
	}

	if rating == nil {
		return Feedback{}, fault.New(fault.NotFound, "You have not rated this run. POST /query/runs/{runId}/feedback rates it.")
	}

	return *rating, nil
}

// rated returns the rating in force of a run, or nil.
func (r *Runs) rated(ctx context.Context, one Run) (*Feedback, error) {
	runs := []Run{one}
	err := r.DB.Do(ctx, func(q postgres.Querier) error { return setRatings(ctx, q, one.Account, runs) })

	return runs[0].Feedback, err
}

// inForce returns the last recorded revision, or nil. all must be in order of revision.
func inForce(all []opinion) (last *opinion) {
	for i := range all {
		if all[i].state == stateRecorded {
			last = &all[i]
		}
	}

	return last
}

// submit sends a revision to the tracing store and records it.
func (r *Runs) submit(ctx context.Context, who auth.Principal, id uuid.UUID, action string, next opinion) error {
	run, err := r.own(ctx, who, id)
	if err != nil {
		return err
	}

	if run.Status != Completed {
		return fault.New(fault.RunNotCompleted, "Only a completed run can be rated. This one is "+string(run.Status)+".")
	}

	var before []opinion

	next.account, next.run, next.trace, next.at = run.Account, run.ID, run.TraceID, r.now()

	err = r.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		next, before, err = insertOpinion(ctx, tx, next, next.at.Add(sendTime))

		return err
	})
	if err != nil {
		return err
	}

	failure := r.Tracing.Rate(ctx, rating(traced(run), next, before))

	// The client may have disconnected, but what the store received must still be recorded.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()

	err = r.DB.InTx(ctx, func(tx postgres.Tx) error {
		if failure == nil {
			recorded, err := recordOpinion(ctx, tx, next, r.now())
			if err != nil {
				return err
			}

			if recorded {
				return audit.WriteTx(ctx, tx, who.Audit(run.Account, next.at, action, run.audit()))
			}

			failure = fault.New(fault.UpstreamUnavailable, "The tracing store did not respond in time. Nothing was recorded. Try again.")
		}

		return refuseOpinion(ctx, tx, next, r.now())
	})
	if failure != nil {
		return failure // if the refusal was not written, the repair writes it later
	}

	return err
}

// rating returns a revision in the form in which it is sent to the store. all are the revisions that the store may have.
func rating(run tracing.Run, one opinion, all []opinion) tracing.Rating {
	rating := tracing.Rating{Run: run, Revision: one.revision, Up: one.up, Comment: one.comment}

	for _, other := range all {
		if other.sent && other.revision != one.revision {
			rating.Others = append(rating.Others, other.revision)
		}
	}

	return rating
}

// repair sends the rating in force to the store for every run for which the store may have another one. It stops at the
// first rating that the store does not accept, and postpones that one so that the others are repaired before it.
func (r *Runs) repair(ctx context.Context, _ job.Lease) error {
	var due []Args

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		due, err = selectUnsure(ctx, q, r.now(), repairAtOnce)

		return err
	})
	if err != nil {
		return err
	}

	for _, one := range due {
		if err := r.repairOne(ctx, one); err != nil {
			r.Log.WarnContext(ctx, "repair of a rating in the tracing store failed", "run", one.Run, "error", err)

			return r.DB.Do(ctx, func(q postgres.Querier) error { return postponeOpinions(ctx, q, one, r.now(), r.now().Add(restTime)) })
		}
	}

	return nil
}

func (r *Runs) repairOne(ctx context.Context, one Args) error {
	var (
		all []opinion
		run *Run
		now = r.now()
	)

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if all, err = selectOpinions(ctx, q, one.Account, one.Run); err == nil {
			run, err = selectRun(ctx, q, one.Account, one.Run)
		}

		return err
	})
	if err != nil || len(all) == 0 {
		return err
	}

	for _, o := range all {
		if o.state == stateSending && o.checkAt.After(now) {
			return nil // the sender records the outcome; repair after that
		}
	}

	last := all[len(all)-1]

	want := opinion{account: one.Account, run: one.Run, trace: last.trace}
	if found := inForce(all); found != nil && run != nil {
		want = *found
	}

	about := tracing.Run{TraceID: last.trace, ID: one.Run.String(), User: one.Account.String()}
	if run != nil {
		about = traced(*run)
	}

	asRating := rating(about, want, all)
	asRating.Again = true

	if err := r.Tracing.Rate(ctx, asRating); err != nil {
		return err
	}

	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		if run == nil {
			return deleteOpinions(ctx, tx, one, last.revision)
		}

		return settleOpinions(ctx, tx, one, last.revision, want.revision, r.now())
	})
}
