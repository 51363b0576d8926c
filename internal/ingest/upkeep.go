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

// Upkeep is how tables are cared for besides their commits. It has an engine of its own, so that nobody who posts
// rows waits for it.
type Upkeep struct {
	Engine *engine.Engine
	Every  time.Duration // between two looks at what is due
	Time   time.Duration // that a chore may take
}

const (
	choresAtOnce = 100
	// A chore that failed, or whose table is about to go, waits so long.
	choreFailed = 5 * time.Minute
	choreIdle   = 24 * time.Hour
)

// chores is what is done for a table while nobody else does the same. Each says itself what it has done (lake.DoneTx).
func (g *Ingest) chores() map[lake.Chore]func(ctx context.Context, c chore) error {
	return map[lake.Chore]func(ctx context.Context, c chore) error{lake.Profile: g.profile, lake.Compact: g.compact}
}

// chore is one table's, in the hands of the one who holds its lease.
type chore struct {
	due      lake.Due // of the snapshot that is current now
	snapshot lake.Snapshot
	files    []lake.File
	lease    job.Lease
}

// findChores enqueues what is due. What is in the queue already is not enqueued again.
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

// doChore does what is due for a table. One that fails is put off, so that it does not come again at once.
func (g *Ingest) doChore(ctx context.Context, args ChoreArgs) error {
	due := lake.Due{Table: lake.Table{Account: args.Account, Dataset: args.Dataset}, Chore: args.Chore}
	work := job.Work{Account: args.Account, ID: uuid.NewSHA1(args.Dataset, []byte(args.Chore)), Job: args, Queue: UpkeepQueue}

	return g.Jobs().Hold(ctx, work, func(ctx context.Context, lease job.Lease) error {
		err := g.doHeld(ctx, due, lease)
		if err == nil || errors.Is(err, job.ErrLost) {
			return err
		}

		return errors.Join(err, g.putOff(ctx, due, lease, choreFailed))
	})
}

func (g *Ingest) doHeld(ctx context.Context, due lake.Due, lease job.Lease) error {
	snapshot, files, err := g.inForce(ctx, due.Table)
	if err != nil {
		return err
	}

	if snapshot == nil {
		return g.putOff(ctx, due, lease, choreIdle)
	}

	due.Snapshot = snapshot.ID

	ctx, cancel := context.WithTimeout(ctx, g.Upkeep.Time)
	defer cancel()

	return g.chores()[due.Chore](ctx, chore{due: due, snapshot: *snapshot, files: files, lease: lease})
}

// inForce is the current snapshot and its files, nil if there is none.
func (g *Ingest) inForce(ctx context.Context, t lake.Table) (snapshot *lake.Snapshot, files []lake.File, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		snapshot, files, err = g.Lake.Current(ctx, q, t)

		return err
	})

	return snapshot, files, err
}

func (g *Ingest) putOff(ctx context.Context, due lake.Due, lease job.Lease, lasting time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failTime)
	defer cancel()

	return g.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		return g.Lake.PutOffTx(ctx, tx, due, lasting)
	})
}
