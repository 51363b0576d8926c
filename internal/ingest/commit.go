package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	commitTogether = 200 // ingestions in one snapshot
	commitPoll     = 25 * time.Millisecond
)

// turns lets one goroutine of this process at a time be the committer of a table. The others wait here
// instead of asking the database again and again.
type turns struct {
	mu   sync.Mutex
	next map[lake.Table]chan struct{}
}

func newTurns() *turns { return &turns{next: map[lake.Table]chan struct{}{}} }

// take waits for the turn. The next one is let in by done.
func (t *turns) take(ctx context.Context, table lake.Table) (done func(), err error) {
	for {
		t.mu.Lock()
		taken, busy := t.next[table]

		if !busy {
			mine := make(chan struct{})
			t.next[table] = mine
			t.mu.Unlock()

			return func() {
				t.mu.Lock()
				delete(t.next, table)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()

		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// commitWork is the lease of a table's commits. Its id is not the dataset's, so that it cannot meet other work.
func commitWork(t lake.Table) job.Work {
	return job.Work{
		Account: t.Account, ID: uuid.NewSHA1(t.Dataset, []byte("commit")), Job: CommitArgs{Account: t.Account, Dataset: t.Dataset}, Queue: Queue,
	}
}

// committed waits until the ingestion, which is ready, is in a snapshot or has failed. It commits by itself
// if nobody else does.
func (g *Ingest) committed(ctx context.Context, i Ingestion) (outcome, error) {
	done, err := g.commits.take(ctx, i.table())
	if err != nil {
		return outcome{}, err
	}
	defer done()

	for {
		now, err := g.outcome(ctx, i)
		if err != nil || (now.status != Running && now.status != Queued) {
			return now, err
		}

		if err := g.Jobs().Hold(ctx, commitWork(i.table()), func(ctx context.Context, lease job.Lease) error {
			return g.drain(ctx, i.table(), lease)
		}); err != nil && !errors.Is(err, job.ErrLost) && !errors.Is(err, lake.ErrConflict) {
			return outcome{}, err
		}

		if now, err = g.outcome(ctx, i); err != nil || (now.status != Running && now.status != Queued) {
			return now, err
		}

		select {
		case <-time.After(commitPoll): // another replica is at it
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
}

func (g *Ingest) outcome(ctx context.Context, i Ingestion) (now outcome, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		now, err = selectOutcome(ctx, q, i)

		return err
	})

	return now, err
}

// drain commits everything that is ready.
func (g *Ingest) drain(ctx context.Context, table lake.Table, lease job.Lease) error {
	for {
		var ready []Ingestion

		err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
			ready, err = selectReady(ctx, q, table, commitTogether)

			return err
		})
		if err != nil || len(ready) == 0 {
			return err
		}

		if err := g.commit(ctx, table, together(ready), lease); err != nil {
			return err
		}
	}
}

// together are the ingestions that can be one snapshot: rows that are added, or one replacement.
func together(ready []Ingestion) []Ingestion {
	for n, i := range ready {
		if i.Mode == lake.Replace {
			return ready[:max(n, 1)]
		}
	}

	return ready
}

var errMoved = errors.New("an ingestion is no longer ready")

func (g *Ingest) commit(ctx context.Context, table lake.Table, ready []Ingestion, lease job.Lease) error {
	dataset, draft, err := g.target(ctx, table)
	if err != nil {
		return err
	}

	var ids []uuid.UUID

	for _, i := range ready {
		if dataset == nil || i.Epoch != dataset.Epoch {
			if err := g.refuse(ctx, i, cleared(), lease); err != nil {
				return err
			}

			continue
		}

		ids = append(ids, i.ID)
	}

	if len(ids) == 0 {
		return nil
	}

	_, err = g.Lake.Commit(ctx, lake.Change{Table: table, Mode: ready[len(ready)-1].Mode, Ingestions: ids}, func(tx postgres.Tx, made lake.Snapshot) error {
		if draft != nil {
			if err := g.Catalog.CreateDraftTx(ctx, tx, *draft); err != nil {
				return err
			}
		}

		return g.commitTx(ctx, tx, *dataset, ids, made, lease)
	})

	switch {
	case draft != nil && fault.Is(err, fault.Conflict): // the name of the dataset is taken
		return g.refuseAll(ctx, ready, err, lease)
	case errors.Is(err, lake.ErrStale):
		return g.replan(ctx, ready, lease)
	case errors.Is(err, errMoved):
		return nil // looked at again by drain
	default:
		return err
	}
}

// commitTx writes what a snapshot means for us, in the transaction that makes it the current one.
func (g *Ingest) commitTx(ctx context.Context, tx postgres.Tx, dataset catalog.Dataset, ids []uuid.UUID, made lake.Snapshot, lease job.Lease) error {
	if err := lease.FenceTx(ctx, tx); err != nil {
		return err
	}

	fits, err := g.Catalog.SetContentTx(ctx, tx, dataset, content(made))
	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	if err == nil && fits && made.Operation == lake.Replace {
		if err = forgetOthers(ctx, tx, table, ids); err == nil {
			err = g.Catalog.SetValuesTx(ctx, tx, dataset.Account, dataset.ID, nil) // nobody finds it by what is gone
		}
	}

	if err != nil {
		return err
	}

	done, err := complete(ctx, tx, table, ids, made.ID, g.Now())
	if err == nil && (!fits || done < len(ids)) {
		err = errMoved
	}

	if err != nil {
		return err
	}

	entries, err := selectAudit(ctx, tx, table, ids)

	for _, entry := range entries {
		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}
	}

	return err
}

// current is the dataset as it is now, nil if it is gone.
func (g *Ingest) current(ctx context.Context, table lake.Table) (dataset *catalog.Dataset, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		dataset, err = g.Catalog.Live(ctx, q, table.Account, table.Dataset)

		return err
	})

	return dataset, err
}

// target is the dataset that a table is of, nil if it is gone. It may be a draft, which the commit creates.
func (g *Ingest) target(ctx context.Context, table lake.Table) (dataset *catalog.Dataset, draft *catalog.Draft, err error) {
	dataset, err = g.current(ctx, table)
	if err != nil || dataset != nil {
		return dataset, nil, err
	}

	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		draft, err = g.Catalog.FindDraft(ctx, q, table.Account, table.Dataset)

		return err
	})
	if draft != nil {
		dataset = new(draft.Dataset())
	}

	return dataset, draft, err
}

func (g *Ingest) refuseAll(ctx context.Context, ready []Ingestion, reason error, lease job.Lease) error {
	for _, i := range ready {
		if err := g.refuse(ctx, i, reason, lease); err != nil {
			return err
		}
	}

	return nil
}

// refuse ends an ingestion that was ready.
func (g *Ingest) refuse(ctx context.Context, i Ingestion, reason error, lease job.Lease) error {
	return g.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		if err := finish(ctx, tx, i, Failed, reason, g.Now()); err != nil {
			return err
		}

		return g.Lake.DropTx(ctx, tx, i.table(), i.ID)
	})
}

// replan: the columns of one of them no longer fit the table, because another ingestion gave them other types
// first. Each is tried alone; the one that does not fit starts again.
func (g *Ingest) replan(ctx context.Context, ready []Ingestion, lease job.Lease) error {
	if len(ready) > 1 {
		for _, i := range ready {
			if err := g.commit(ctx, i.table(), []Ingestion{i}, lease); err != nil {
				return err
			}
		}

		return nil
	}

	i := ready[0]

	return g.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lease.FenceTx(ctx, tx); err != nil {
			return err
		}

		if err := g.Lake.DropTx(ctx, tx, i.table(), i.ID); err != nil {
			return err
		}

		if i.kind == kindRows {
			return finish(ctx, tx, i, Failed, fault.New(fault.Conflict, "The columns of the dataset changed meanwhile. Send the rows again."), g.Now())
		}

		if err := requeue(ctx, tx, i); err != nil {
			return err
		}

		return g.Jobs().InsertTx(ctx, tx, i.work().Job, insertOpts(i.queue()))
	})
}

// asFault is the outcome of a posted body for its caller.
func (o outcome) asFault() error {
	if o.status == Completed {
		return nil
	}

	return fault.New(fault.Code(o.code), o.message)
}
