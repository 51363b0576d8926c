package upload

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// EraseDataset removes the files that were loaded into a dataset, or looked at for it, and their rows. It needs the rows of the dataset's
// ingestions, and is safe to interrupt.
func (u Uploads) EraseDataset(ctx context.Context, lease job.Lease, account, dataset uuid.UUID) error {
	return u.erase(ctx, lease, func(tx postgres.Tx) (left int64, err error) { return eraseBound(ctx, tx, account, dataset, u.Now()) })
}

// EraseAccount removes the files that an account uploaded, and their rows, except files that belong to datasets of other accounts.
func (u Uploads) EraseAccount(ctx context.Context, lease job.Lease, account uuid.UUID) error {
	return u.erase(ctx, lease, func(tx postgres.Tx) (left int64, err error) { return eraseOwn(ctx, tx, account, u.Now()) })
}

// eraseRounds limits how often erase looks again. An object that is left is tried again by the next attempt at the erasure.
const eraseRounds = 5

// erase calls mark, which deletes the rows of files whose objects are removed and makes the others due, and removes the objects, until none is left.
func (u Uploads) erase(ctx context.Context, lease job.Lease, mark func(tx postgres.Tx) (left int64, err error)) error {
	var failed error

	for range eraseRounds {
		var left int64

		err := lease.InTx(ctx, func(tx postgres.Tx) (err error) {
			left, err = mark(tx)

			return err
		})
		if err != nil || left == 0 {
			return err
		}

		failed = errors.Join(u.remove(ctx, lease), fmt.Errorf("%d uploaded files are left", left))
	}

	return failed
}
