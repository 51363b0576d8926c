package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Maintenance configures the maintenance of tables. It has its own engine, so that it does not delay posts of rows.
type Maintenance struct {
	Engine   *engine.Engine
	Interval time.Duration // between two checks for due chores
	Timeout  time.Duration // longest duration of a chore
}

const (
	choresAtOnce = 100
	// Delays of a chore that failed, and of a chore that is not worth repeating soon.
	choreFailed = 5 * time.Minute
	choreIdle   = 24 * time.Hour
	putOffTime  = 10 * time.Second // longest duration of putOff
)

// chores returns the functions that do each chore. A function runs while no other worker does the same chore for the
// table. It records itself that the chore is done (lake.DoneTx).
func (g *Ingest) chores() map[lake.Chore]func(ctx context.Context, c chore) error {
	return map[lake.Chore]func(ctx context.Context, c chore) error{lake.Profile: g.profile, lake.Compact: g.compact}
}

// chore is one chore of a table whose lease this worker holds.
type chore struct {
	due      lake.Due // Snapshot is the current one
	snapshot lake.Snapshot
	files    []lake.File
	lease    job.Lease
	begun    time.Time
}

// findChores enqueues due chores. A chore that is already in the queue is not enqueued again.
func (g *Ingest) findChores(ctx context.Context, _ job.Lease) error {
	for name := range g.chores() {
		err := g.DB.InTx(ctx, func(tx postgres.Tx) error {
			due, err := g.Lake.Due(ctx, tx, name, choresAtOnce)
			if err != nil {
				return err
			}

			for _, d := range due {
				args := ChoreArgs{Account: d.Table.Account, Dataset: d.Table.Dataset, Chore: d.Chore}
				if err := g.Jobs().InsertTx(ctx, tx, args, choreOpts()); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// choreWork returns the work whose lease permits to do a chore of a table.
func choreWork(t lake.Table, chore lake.Chore) job.Work {
	return job.Work{
		Account: t.Account, ID: uuid.NewSHA1(t.Dataset, []byte(chore)), Job: ChoreArgs{Account: t.Account, Dataset: t.Dataset, Chore: chore}, Queue: MaintenanceQueue,
	}
}

// doChore does one chore of a table. A chore that fails is postponed, so that it is not repeated at once.
func (g *Ingest) doChore(ctx context.Context, args ChoreArgs) error {
	due := lake.Due{Table: lake.Table{Account: args.Account, Dataset: args.Dataset}, Chore: args.Chore}

	return g.Jobs().Attempt(ctx, job.Attempt{
		Work: choreWork(due.Table, due.Chore), Last: true, Room: g.room,
		Do: func(ctx context.Context, lease job.Lease) error { return g.doHeld(ctx, due, lease) },
		Fail: func(ctx context.Context, lease job.Lease, reason error) error {
			return errors.Join(reason, g.putOff(ctx, due, lease, choreFailed))
		},
	})
}

func (g *Ingest) doHeld(ctx context.Context, due lake.Due, lease job.Lease) error {
	begun := g.Now()

	snapshot, files, err := g.inForce(ctx, due.Table)
	if err != nil {
		return err
	}

	if snapshot == nil {
		return g.putOff(ctx, due, lease, choreIdle)
	}

	due.Snapshot = snapshot.ID

	ctx, cancel := context.WithTimeout(ctx, g.Maintenance.Timeout)
	defer cancel()

	return g.chores()[due.Chore](ctx, chore{due: due, snapshot: *snapshot, files: files, lease: lease, begun: begun})
}

// inForce returns the current snapshot and its files, or nil if there is none.
func (g *Ingest) inForce(ctx context.Context, t lake.Table) (snapshot *lake.Snapshot, files []lake.File, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		snapshot, files, err = g.Lake.Current(ctx, q, t)

		return err
	})

	return snapshot, files, err
}

func (g *Ingest) putOff(ctx context.Context, due lake.Due, lease job.Lease, lasting time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putOffTime)
	defer cancel()

	return lease.InTx(ctx, func(tx postgres.Tx) error { return g.Lake.PutOffTx(ctx, tx, due, lasting) })
}
