package job

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"quern.dev/quern/internal/fault"
)

var (
	// ErrLost means that another worker has the work now. A worker that receives it stops and writes nothing more.
	ErrLost = errors.New("the lease was lost")
	// ErrStopped means that the work is no longer wanted: it was cancelled, ended elsewhere, or waits for a person.
	ErrStopped = errors.New("the work is no longer wanted")
)

// Over reports whether an error means that this worker has nothing more to do: ErrLost or ErrStopped.
func Over(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrStopped) }

// Attempt is one attempt at a piece of work.
type Attempt struct {
	Work Work
	Last bool // no attempt follows this one if it fails
	// Room returns an error while this process lacks the space that the work needs. nil means that it needs none.
	Room func() error
	// Do does the work. Every transaction in which it writes begins with FenceTx.
	Do func(ctx context.Context, lease Lease) error
	// Passing reports whether a later attempt may succeed after this error. It is not called for the last attempt.
	Passing func(err error) bool
	// Fail records that the work has failed, and returns what the log must contain. nil means that Do does this itself:
	// then every error of Do leads to another attempt.
	Fail func(ctx context.Context, lease Lease, reason error) error
}

// Attempt makes one attempt at a piece of work while it holds the lease. The result is for Snooze:
//
//   - no room, before the work or because of it: the job waits, and the attempt does not count
//   - another worker has the work: ErrLost
//   - Do returned the result of Wait: the job waits, also in the last attempt
//   - Do succeeded, or the work is no longer wanted: nil
//   - Do failed for a reason that may pass, or because this process is stopping: the error, so that River repeats the
//     job after a delay
//   - Do failed for any other reason, or in the last attempt: the result of Fail
func (c *Client) Attempt(ctx context.Context, a Attempt) error {
	if a.Room != nil {
		if err := a.Room(); err != nil {
			return Wait(err)
		}
	}

	return c.Hold(ctx, a.Work, func(ctx context.Context, lease Lease) error {
		return a.after(ctx, lease, a.Do(ctx, lease))
	})
}

// after decides what follows the result of Do.
func (a Attempt) after(ctx context.Context, lease Lease, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrStopped):
		return nil
	case errors.Is(err, ErrLost):
		return err // a failure could not be recorded either
	case isWaiting(err):
		return err
	case fault.IsNoRoom(err) && a.Room != nil && a.Room() != nil:
		return Wait(err) // others use the space; space that this attempt used is free again by now
	case a.Fail == nil, !a.Last && (ctx.Err() != nil || a.Passing(err)):
		return err
	default:
		return a.Fail(ctx, lease, err)
	}
}

// GiveBack removes the lease that a dead worker left of work that has ended. Otherwise Sweep would deliver the job
// again forever. If a worker holds the lease, GiveBack does nothing, because that worker gives it back.
func (c *Client) GiveBack(ctx context.Context, work Work) error {
	err := c.Hold(ctx, work, func(context.Context, Lease) error { return nil })
	if errors.Is(err, ErrLost) {
		return nil
	}

	return err
}

// waitTime is how long a job waits if this process cannot work on it now.
const waitTime = 2 * time.Second

// waiting is the reason why a job has to wait.
type waiting struct {
	reason  error
	lasting time.Duration
}

func isWaiting(err error) bool {
	_, ok := errors.AsType[waiting](err)

	return ok
}

func (w waiting) Error() string { return w.reason.Error() }
func (w waiting) Unwrap() error { return w.reason }

// Wait marks the reason why this process cannot work on a job now. The job is delivered again soon, to any process,
// and the attempt does not count.
func Wait(reason error) error { return WaitFor(reason, waitTime) }

// WaitFor is Wait for a reason that lasts longer.
func WaitFor(reason error, lasting time.Duration) error { return waiting{reason, lasting} }

// Snooze returns the error that a worker returns to River. If another worker has the work, the job is delivered again
// when that worker's lease would have expired. A job that has to wait is delivered again soon.
func Snooze(err error) error {
	if errors.Is(err, ErrLost) {
		return river.JobSnooze(leaseTime)
	}

	if w, ok := errors.AsType[waiting](err); ok {
		return river.JobSnooze(w.lasting)
	}

	return err
}
