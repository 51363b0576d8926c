package erase

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/tracing"
	"quern.dev/quern/internal/upload"
)

// Eraser does the work of erasures, and drops local copies of what was erased.
type Eraser struct {
	DB      *postgres.DB
	Lake    *lake.Lake
	Ingest  *ingest.Ingest
	Uploads upload.Uploads
	Query   *query.Query
	Runs    *run.Runs
	Tracing *tracing.Tracing
	Jobs    func() *job.Client
	Log     *slog.Logger
	Now     func() time.Time
}

// work erases step by step. Every step finds by itself what is left to do.
func (e *Eraser) work(ctx context.Context, args Args, lease job.Lease) error {
	var (
		of       Receipt
		datasets []uuid.UUID
	)

	err := e.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if of, err = selectErasure(ctx, q, args.Account, args.Erasure); err != nil || of.State != Running {
			return err
		}

		if datasets = []uuid.UUID{of.dataset}; of.Kind == User {
			datasets, err = selectDatasets(ctx, q, of.account)
		}

		return err
	})
	if err != nil || of.State != Running {
		return err
	}

	erase := e.eraseDataset
	if of.Kind == History {
		erase = e.eraseHistory
	}

	for _, dataset := range datasets {
		if err := erase(ctx, lake.Table{Account: of.account, Dataset: dataset}, lease); err != nil {
			return err
		}
	}

	if of.Kind == User {
		if err := e.eraseUser(ctx, of, lease); err != nil {
			return err
		}
	}

	if err := lease.InTx(ctx, func(tx postgres.Tx) error { return e.conclude(ctx, tx, of) }); err != nil {
		return err
	}

	e.Lake.DropCopies(e.Now())

	return nil
}

func (e *Eraser) eraseDataset(ctx context.Context, t lake.Table, lease job.Lease) error {
	if err := e.eraseResults(ctx, t, lease); err != nil {
		return err
	}

	if err := e.Ingest.EraseTable(ctx, t); err != nil {
		return err
	}

	return lease.InTx(ctx, func(tx postgres.Tx) error { return deleteDataset(ctx, tx, t) })
}

// eraseHistory keeps the dataset with its current rows.
func (e *Eraser) eraseHistory(ctx context.Context, t lake.Table, lease job.Lease) error {
	if err := e.eraseResults(ctx, t, lease); err != nil {
		return err
	}

	return e.Ingest.EraseHistory(ctx, t)
}

// eraseResults erases what was made of a dataset, and the files that it was made of.
func (e *Eraser) eraseResults(ctx context.Context, t lake.Table, lease job.Lease) error {
	// Twice: what was written during the first round is due in the second one.
	for range 2 {
		if err := e.Runs.EraseReaders(ctx, t); err != nil {
			return err
		}

		if err := e.Query.EraseDataset(ctx, t); err != nil {
			return err
		}
	}

	// This needs the rows of ingestions, which go with the table.
	return e.Uploads.EraseDataset(ctx, lease, t.Account, t.Dataset)
}

func (e *Eraser) eraseUser(ctx context.Context, of Receipt, lease job.Lease) error {
	for range 2 {
		if err := e.Runs.EraseAccount(ctx, of.account); err != nil {
			return err
		}

		if err := e.Query.EraseAccount(ctx, of.account); err != nil {
			return err
		}
	}

	if err := e.Uploads.EraseAccount(ctx, lease, of.account); err != nil {
		return err
	}

	return lease.InTx(ctx, func(tx postgres.Tx) error { return deleteUser(ctx, tx, of.account, of.Target, Pseudonym(of.account)) })
}

// conclude records that everything is erased that the service can reach. The erasure of a user is finished by the command.
func (e *Eraser) conclude(ctx context.Context, tx postgres.Tx, of Receipt) error {
	state := Done
	if of.Kind == User {
		state = Erased
	}

	return concludeErasure(ctx, tx, of.account, of.ID, state, outOfReach(of.Kind, e.Tracing.CanErase()), e.Now())
}

func outOfReach(kind Kind, traces bool) []string {
	list := []string{
		"backups of the database and of the bucket",
		"the write-ahead log of PostgreSQL, and deleted rows in its files until VACUUM has run",
		"earlier versions of objects, if the bucket keeps versions",
		"log lines of the service, which have ids and names but no cells",
		"copies of data files in the caches of other replicas: each drops them within 10 seconds, or when it starts",
		"files that people downloaded, and what was sent to language models and webhooks",
	}

	if !traces {
		list = append(list, "traces of runs: the tracing store cannot delete them")
	}

	switch kind {
	case History:
		return append(list, "questions that did not read the dataset, verified questions and definitions, also if they quote erased rows")
	case Dataset:
	case User:
		return append(list, "rows that the user added to datasets of others, and the files that were loaded into them",
			"names in the audit log are replaced by a pseudonym; what happened, and when, stays")
	}

	return append(list, "questions that did not read the dataset, also if they quote it", "audit entries, which have names but no cells")
}

const (
	lookEvery = 5 * time.Second
	// lookBack is how long after an erasure copies are dropped again: a statement that began before it may have fetched one.
	lookBack = time.Minute
)

// Watch drops local copies of data files that are older than the last erasure, until ctx ends. Copies have no dataset in their names, so all go.
func (e *Eraser) Watch(ctx context.Context) {
	var seen time.Time

	for {
		last, err := e.last(ctx)

		switch {
		case err != nil:
			e.Log.WarnContext(ctx, "erasures cannot be read; copies of erased data stay for now", "error", err)
		case last.After(seen), time.Since(last) < lookBack:
			e.Lake.DropCopies(last.Add(lookBack))
			seen = last
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

func (e *Eraser) last(ctx context.Context) (at time.Time, err error) {
	err = e.DB.Do(ctx, func(q postgres.Querier) error {
		at, err = selectLast(ctx, q)

		return err
	})

	return at, err
}
