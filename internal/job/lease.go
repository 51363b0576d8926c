package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// ErrLost says that somebody else has the work now. Whoever gets it stops, and writes nothing more.
var ErrLost = errors.New("the lease was lost")

const (
	leaseTime  = 15 * time.Second
	renewEvery = 5 * time.Second
	sweepEvery = 2 * time.Second
	// rescueAfter is how long a worker may take to get its lease. Jobs without one are short.
	rescueAfter = time.Minute
)

// Lease is the right to write for a piece of work.
type Lease struct {
	account uuid.UUID
	work    uuid.UUID
	id      uuid.UUID
}

// Work names what a lease is for. Job delivers it again if its worker dies.
type Work struct {
	Account uuid.UUID
	ID      uuid.UUID
	Job     river.JobArgs
	Queue   string
}

// Hold runs do while it holds and renews the lease of the work. If somebody else holds it, do is not
// called and Hold returns ErrLost. The context of do ends when the lease is lost.
func (c *Client) Hold(ctx context.Context, work Work, do func(ctx context.Context, lease Lease) error) error {
	lease := Lease{account: work.Account, work: work.ID, id: uuid.Must(uuid.NewV7())}

	args, err := json.Marshal(work.Job)
	if err != nil {
		return fmt.Errorf("the job's arguments: %w", err)
	}

	err = c.db.Do(ctx, func(q postgres.Querier) error { return acquire(ctx, q, lease, work, args, leaseTime) })
	if err != nil {
		return err
	}

	working, lost := context.WithCancelCause(ctx)
	defer lost(nil)

	renewing := make(chan struct{})

	go func() {
		defer close(renewing)

		err := fault.Try(func() error {
			c.renew(working, lease, lost)

			return nil
		})
		if err != nil {
			c.log.ErrorContext(working, "a lease is no longer renewed", "work", work.ID, "error", err)
			lost(ErrLost)
		}
	}()

	err = do(working, lease)

	lost(nil)
	<-renewing

	if cause := context.Cause(working); errors.Is(cause, ErrLost) {
		return ErrLost
	}

	// Given back even if the caller has left, so that a retry need not wait for the lease to run out.
	returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()

	return errors.Join(err, c.db.Do(returning, func(q postgres.Querier) error { return release(returning, q, lease) }))
}

// renew keeps the lease until ctx ends. A database that does not answer is no reason to give it up before
// it has run out: until then nobody else can have it.
func (c *Client) renew(ctx context.Context, lease Lease, lost context.CancelCauseFunc) {
	until := time.Now().Add(leaseTime)

	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
		}

		began := time.Now()
		err := c.db.Do(ctx, func(q postgres.Querier) error { return renew(ctx, q, lease, leaseTime) })

		switch {
		case err == nil:
			until = began.Add(leaseTime)
		case errors.Is(err, ErrLost) || time.Now().After(until):
			lost(ErrLost)

			return
		}
	}
}

// FenceTx lets the transaction pass only while the lease is held, and keeps it from being taken until the
// transaction ends. Every write of a worker begins with it.
func (l Lease) FenceTx(ctx context.Context, tx postgres.Tx) error { return fence(ctx, tx, l) }

// Sweep takes the leases that ran out from their holders and delivers their work again, and the jobs of workers
// that died before they had a lease. Any replica may.
func (c *Client) Sweep(ctx context.Context) error {
	return c.db.InTx(ctx, func(tx postgres.Tx) error {
		expired, err := takeExpired(ctx, tx, uuid.Must(uuid.NewV7()), leaseTime)
		if err != nil {
			return err
		}

		for _, work := range expired {
			if _, err := c.river.InsertTx(ctx, tx, work, &river.InsertOpts{Queue: work.queue}); err != nil {
				return err
			}

			c.log.WarnContext(ctx, "work whose worker died is delivered again", "job", work.kind, "work", work.id)
		}

		return rescue(ctx, tx, rescueAfter)
	})
}

// stored is a job as a lease keeps it.
type stored struct {
	kind, queue string
	args        json.RawMessage
	id          uuid.UUID
}

func (s stored) Kind() string                 { return s.kind }
func (s stored) MarshalJSON() ([]byte, error) { return s.args, nil }

// Snooze is what a worker returns when somebody else has its work: the job looks again when that one's
// lease would have run out.
func Snooze(err error) error {
	if errors.Is(err, ErrLost) {
		return river.JobSnooze(leaseTime)
	}

	return err
}

var _ rivertype.JobArgs = stored{}
