package job_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// TestBehindAPooler checks that a job is worked on and acquires its lease, that the lease is fenced, and that the
// work of a lost lease is delivered again.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()

	db := pgtest.Pooled(t)

	var client *job.Client

	ready, worked := make(chan struct{}), make(chan error, 10)
	client = start(t, db, false, func(ctx context.Context, args task) error {
		<-ready

		err := client.Hold(ctx, job.Work{Account: args.Account, ID: args.Work, Job: args, Queue: "tasks"}, func(ctx context.Context, lease job.Lease) error {
			return db.InTx(ctx, func(tx postgres.Tx) error { return lease.FenceTx(ctx, tx) })
		})
		worked <- err

		return river.JobCancel(err)
	})

	close(ready)

	args := task{Account: uuid.New(), Work: uuid.New()}
	insert(t, db, client, args, nil)
	require.NoError(t, <-worked)

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `INSERT INTO leases (account_id, work_id, lease_id, until, job, queue, args)
			VALUES ($1, $2, $3, now() - interval '1 second', 'task', 'tasks', $4)`, args.Account, uuid.New(), uuid.New(), `{"account": "`+args.Account.String()+`"}`)

		return err
	}))
	require.NoError(t, client.Sweep(t.Context()))
	require.NoError(t, <-worked, "the work of a lease that ran out is delivered again")
}
