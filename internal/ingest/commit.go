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
	commitTogether = 200 // maximum number of ingestions in one snapshot
	commitPoll     = 25 * time.Millisecond
)

// turns makes the goroutines of this process try to get a lease one at a time. The others wait here instead of polling
// the database.
type turns struct {
	mu   sync.Mutex
	next map[uuid.UUID]chan struct{} // by work
}

func newTurns() *turns { return &turns{next: map[uuid.UUID]chan struct{}{}} }

// take waits until the caller may try to get the lease of the work. The caller must call done to admit the next one.
func (t *turns) take(ctx context.Context, work uuid.UUID) (done func(), err error) {
	for {
		t.mu.Lock()
		taken, busy := t.next[work]

		if !busy {
			mine := make(chan struct{})
			t.next[work] = mine
			t.mu.Unlock()

			return func() {
				t.mu.Lock()
				delete(t.next, work)
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

// commitWork returns the work whose lease permits commits to a table. Its id differs from the id of the dataset, so
// that it does not collide with other work.
func commitWork(t lake.Table) job.Work {
	return job.Work{
		Account: t.Account, ID: uuid.NewSHA1(t.Dataset, []byte("commit")), Job: CommitArgs{Account: t.Account, Dataset: t.Dataset}, Queue: Queue,
	}
}

// committed waits until a staged ingestion is in a snapshot or has failed. It commits the ingestion itself if no
// other process does.
func (g *Ingest) committed(ctx context.Context, i Ingestion) (outcome, error) {
	work, drain := commitWork(i.table()), g.drain
	if i.Mode == lake.Merged {
		work, drain = rowsWork(i.table()), g.drainMerges
	}

	done, err := g.turns.take(ctx, work.ID)
	if err != nil {
		return outcome{}, err
	}
	defer done()

	for {
		now, err := g.outcome(ctx, i)
		if err != nil || (now.status != Running && now.status != Queued) {
			return now, err
		}

		if err := g.Jobs().Hold(ctx, work, func(ctx context.Context, lease job.Lease) error {
			return drain(ctx, i.table(), lease)
		}); err != nil && !errors.Is(err, job.ErrLost) && !errors.Is(err, lake.ErrConflict) {
			return outcome{}, err
		}

		if now, err = g.outcome(ctx, i); err != nil || (now.status != Running && now.status != Queued) {
			return now, err
		}

		select {
		case <-time.After(commitPoll): // another replica is committing
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

// drain commits all staged ingestions of a table.
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

// together returns the first ingestions that can be one snapshot: appends, or one replacement.
func together(ready []Ingestion) []Ingestion {
	for n, i := range ready {
		if i.Mode == lake.Replace {
			return ready[:max(n, 1)]
		}
	}

	return ready
}

var errMoved = errors.New("an ingestion is no longer staged")

func (g *Ingest) commit(ctx context.Context, table lake.Table, ready []Ingestion, lease job.Lease) error {
	dataset, draft, err := g.target(ctx, table)
	if err != nil {
		return err
	}

	var fits []Ingestion

	for _, i := range ready {
		if dataset == nil || i.Epoch != dataset.Epoch {
			if err := g.refuse(ctx, i, cleared(), lease); err != nil {
				return err
			}

			continue
		}

		fits = append(fits, i)
	}

	if len(fits) == 0 {
		return nil
	}

	if fits, err = g.unique(ctx, keyed{dataset: *dataset, group: fits, lease: lease}); err != nil || len(fits) == 0 {
		return err
	}

	ids := make([]uuid.UUID, len(fits))
	for n, i := range fits {
		ids[n] = i.ID
	}

	_, err = g.Lake.Commit(ctx, lake.Change{Table: table, Mode: fits[0].Mode, Ingestions: ids}, func(tx postgres.Tx, made lake.Snapshot) error {
		if draft != nil {
			if dataset.NamespaceID, err = g.Catalog.CreateDraftTx(ctx, tx, *draft); err != nil {
				return err
			}
		}

		if err := g.commitTx(ctx, tx, *dataset, ids, made, lease); err != nil {
			return err
		}

		return g.tellLoadedTx(ctx, tx, *dataset, fits, made)
	})

	if err == nil {
		g.observe(Completed, fits...)
	}

	switch {
	case draft != nil && fault.Is(err, fault.Conflict):
		return g.taken(ctx, table, fits, err, lease)
	case errors.Is(err, lake.ErrAttached):
		return g.refuseAll(ctx, fits, errAttached(), lease)
	case errors.Is(err, lake.ErrStale):
		return g.replan(ctx, fits, lease)
	case errors.Is(err, errMoved):
		return nil // drain tries again
	default:
		return err
	}
}

// commitTx changes the rows of the dataset and its ingestions, in the transaction that makes the snapshot the current
// one.
func (g *Ingest) commitTx(ctx context.Context, tx postgres.Tx, dataset catalog.Dataset, ids []uuid.UUID, made lake.Snapshot, lease job.Lease) error {
	if err := lease.FenceTx(ctx, tx); err != nil {
		return err
	}

	fits, err := g.Catalog.SetContentTx(ctx, tx, dataset, content(made))
	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	if err == nil && fits && made.Operation == lake.Replace {
		if err = forgetOthers(ctx, tx, table, ids); err == nil {
			err = g.Catalog.SetValuesTx(ctx, tx, dataset.Account, dataset.ID, nil) // the replaced values must no longer find the dataset
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

	return writeAudit(ctx, tx, table, ids)
}

// writeAudit writes the entries of ingestions that are completed in the transaction.
func writeAudit(ctx context.Context, tx postgres.Tx, table lake.Table, ids []uuid.UUID) error {
	entries, err := selectAudit(ctx, tx, table, ids)

	for _, entry := range entries {
		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}
	}

	return err
}

// current returns the dataset of a table, or nil if it was deleted.
func (g *Ingest) current(ctx context.Context, table lake.Table) (dataset *catalog.Dataset, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		dataset, err = g.Catalog.Live(ctx, q, table.Account, table.Dataset)

		return err
	})

	return dataset, err
}

// taken handles a name conflict of a draft. If the draft itself has become a dataset in the meantime, drain commits
// the ingestions into it. If another dataset has the name, the ingestions fail.
func (g *Ingest) taken(ctx context.Context, table lake.Table, ready []Ingestion, reason error, lease job.Lease) error {
	dataset, err := g.current(ctx, table)
	if err != nil || dataset != nil {
		return err
	}

	return g.refuseAll(ctx, ready, reason, lease)
}

// target returns the dataset of a table, or nil if it was deleted. If the dataset is still a draft, target returns
// the draft too, and the commit creates the dataset.
func (g *Ingest) target(ctx context.Context, table lake.Table) (dataset *catalog.Dataset, draft *catalog.Draft, err error) {
	dataset, err = g.current(ctx, table)
	if err != nil || dataset != nil {
		return dataset, nil, err
	}

	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		draft, err = g.Catalog.FindDraft(ctx, q, table.Account, table.Dataset)

		return err
	})

	switch {
	case err != nil:
		return nil, nil, err
	case draft != nil:
		return new(draft.Dataset()), draft, nil
	default: // the dataset was created between the two queries, or was deleted
		dataset, err = g.current(ctx, table)

		return dataset, nil, err
	}
}

func (g *Ingest) refuseAll(ctx context.Context, ready []Ingestion, reason error, lease job.Lease) error {
	for _, i := range ready {
		if err := g.refuse(ctx, i, reason, lease); err != nil {
			return err
		}
	}

	return nil
}

// refuse ends a staged ingestion with a failure.
func (g *Ingest) refuse(ctx context.Context, i Ingestion, reason error, lease job.Lease) error {
	return lease.InTx(ctx, func(tx postgres.Tx) error {
		if err := g.failTx(ctx, tx, i, reason); err != nil {
			return err
		}

		return g.Lake.DropTx(ctx, tx, i.table(), i.ID)
	})
}

// replan handles ingestions of which one no longer fits the columns of the table, because another ingestion gave the
// columns other types first. It commits each one alone. The one that does not fit starts again, or fails if it is
// posted rows.
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

	return lease.InTx(ctx, func(tx postgres.Tx) error {
		if err := g.Lake.DropTx(ctx, tx, i.table(), i.ID); err != nil {
			return err
		}

		if i.kind == kindRows {
			return g.failTx(ctx, tx, i, fault.New(fault.Conflict, "The columns of the dataset changed in the meantime. Send the rows again."))
		}

		if err := requeue(ctx, tx, i); err != nil {
			return err
		}

		return g.Jobs().InsertTx(ctx, tx, i.work().Job, insertOpts(i.queue()))
	})
}

// asFault returns the failure of a posted body for its caller, or nil if the rows were stored.
func (o outcome) asFault() error {
	if o.status == Completed {
		return nil
	}

	return fault.New(fault.Code(o.code), o.message)
}
