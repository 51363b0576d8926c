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

const (
	leaseTime  = 15 * time.Second
	renewEvery = 5 * time.Second
	sweepEvery = 2 * time.Second
	// rescueAfter is how long a worker may take to get its lease. A job without a lease that runs longer is delivered
	// again. People may wait for such a job, so it is not much longer than what a dead worker costs otherwise.
	rescueAfter = 2 * leaseTime
)

// Lease is the right to write for a piece of work.
type Lease struct {
	db      *postgres.DB
	account uuid.UUID
	work    uuid.UUID
	id      uuid.UUID
}

// Work identifies what a lease is for. Job is delivered again if its worker dies.
type Work struct {
	Account uuid.UUID
	ID      uuid.UUID
	Job     river.JobArgs
	Queue   string
}

// Hold acquires the lease of the work, renews it while do runs, and gives it back afterwards. If another worker holds
// the lease, Hold returns ErrLost without calling do. If the lease is lost while do runs, the context of do ends, and
// Hold returns ErrLost.
func (c *Client) Hold(ctx context.Context, work Work, do func(ctx context.Context, lease Lease) error) error {
	lease := Lease{db: c.db, account: work.Account, work: work.ID, id: uuid.Must(uuid.NewV7())}

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
		c.lost.Add(1)

		return ErrLost
	}

	// Release the lease even if the caller has left, so that a retry need not wait until it expires.
	returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()

	return errors.Join(err, c.db.Do(returning, func(q postgres.Querier) error { return release(returning, q, lease) }))
}

// renew renews the lease until ctx ends. If the database does not answer, it keeps trying until the lease has
// expired, because no other worker can acquire the lease before that.
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

// FenceTx fails with ErrLost if the lease is no longer held. Otherwise the lease cannot be taken before the
// transaction ends. Every write of a worker begins with it.
func (l Lease) FenceTx(ctx context.Context, tx postgres.Tx) error { return fence(ctx, tx, l) }

// InTx runs do in a transaction that begins with FenceTx.
func (l Lease) InTx(ctx context.Context, do func(tx postgres.Tx) error) error {
	return l.db.InTx(ctx, func(tx postgres.Tx) error {
		if err := l.FenceTx(ctx, tx); err != nil {
			return err
		}

		return do(tx)
	})
}

// Record is InTx for a change of the state of the work. do reports whether the work is still wanted. If it is not,
// the transaction is rolled back and Record returns ErrStopped.
func (l Lease) Record(ctx context.Context, do func(tx postgres.Tx) (wanted bool, err error)) error {
	return l.InTx(ctx, func(tx postgres.Tx) error {
		wanted, err := do(tx)
		if err == nil && !wanted {
			err = ErrStopped
		}

		return err
	})
}

// concludeTime is how long Conclude may take.
const concludeTime = 10 * time.Second

// Conclude is Record for the end of the work. It also runs if ctx has ended, because the end must be recorded. It
// changes nothing if the work has ended already or another worker has it.
func (l Lease) Conclude(ctx context.Context, do func(ctx context.Context, tx postgres.Tx) (wanted bool, err error)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), concludeTime)
	defer cancel()

	err := l.Record(ctx, func(tx postgres.Tx) (bool, error) { return do(ctx, tx) })
	if Over(err) {
		return nil
	}

	return err
}

// Sweep takes expired leases from their holders and delivers their work again. It also delivers the jobs of workers
// that died before they had a lease. Any replica may call it.
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

			c.log.WarnContext(ctx, "a worker died, its work is delivered again", "job", work.kind, "work", work.id)
		}

		return rescue(ctx, tx, rescueAfter)
	})
}

// stored is a job as stored with a lease.
type stored struct {
	kind, queue string
	args        json.RawMessage
	id          uuid.UUID
}

func (s stored) Kind() string                 { return s.kind }
func (s stored) MarshalJSON() ([]byte, error) { return s.args, nil }

var _ rivertype.JobArgs = stored{}
