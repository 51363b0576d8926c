package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// DeclareKey sets the key of a dataset if no row violates it. The columns of a dataset without rows are not known yet, so its key is only a list of
// names.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict if rows violate the key, LimitExceeded, Unavailable.
func (g *Ingest) DeclareKey(ctx context.Context, who auth.Principal, at catalog.Path, want catalog.Key) (catalog.Key, error) {
	if err := checkNames(want.Columns); err != nil {
		return catalog.Key{}, err
	}

	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return catalog.Key{}, err
	}

	end, err := g.posts.Begin(who)
	if err != nil {
		return catalog.Key{}, err
	}
	defer end()

	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	// The rows are compared before others have to wait, and again only if they changed.
	checked, err := g.keyHolds(ctx, table, uuid.Nil, &want)
	if err != nil {
		return catalog.Key{}, err
	}

	return want, g.alone(ctx, table, func(ctx context.Context, lease job.Lease) error {
		if _, err := g.keyHolds(ctx, table, checked, &want); err != nil {
			return err
		}

		return lease.InTx(ctx, func(tx postgres.Tx) error { return g.Catalog.SetKeyTx(ctx, tx, who, at, dataset.ID, want) })
	})
}

// RemoveKey removes the key of a dataset. It needs no lease, because rows need no check without a key.
//
// Faults: NotFound, Forbidden.
func (g *Ingest) RemoveKey(ctx context.Context, who auth.Principal, at catalog.Path) error {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return err
	}

	return g.DB.InTx(ctx, func(tx postgres.Tx) error { return g.Catalog.SetKeyTx(ctx, tx, who, at, dataset.ID, catalog.Key{}) })
}

// checkNames checks the columns of a key that is declared.
func checkNames(columns []string) error {
	for n, name := range columns {
		if slices.ContainsFunc(columns[:n], func(other string) bool { return strings.EqualFold(name, other) }) {
			return fault.Invalid("columns", fmt.Sprintf("names the column %q twice", name))
		}
	}

	return nil
}

// keyHolds checks that the rows of the current snapshot satisfy a key, unless it is the one that was checked before. It gives the columns their
// spelling in the dataset, and returns the snapshot.
func (g *Ingest) keyHolds(ctx context.Context, table lake.Table, checked uuid.UUID, key *catalog.Key) (uuid.UUID, error) {
	snapshot, files, err := g.inForce(ctx, table)
	if err != nil || snapshot == nil || snapshot.ID == checked {
		return checked, err
	}

	columns, err := keyOf(snapshot.Columns, key.Columns, "columns")
	if err != nil {
		return uuid.Nil, err
	}

	for n, c := range columns {
		key.Columns[n] = c.Name
	}

	nulls, repeated, err := g.countViolations(ctx, files, columns)
	if err == nil && nulls+repeated > 0 {
		err = fault.New(fault.Conflict, fmt.Sprintf("%s cannot be the key: %s. Delete or merge these rows, or choose other columns.", key, violating(nulls, repeated)))
	}

	return snapshot.ID, err
}

// violating returns a text with the numbers of rows that violate a key.
func violating(nulls, repeated int64) string {
	return fmt.Sprintf("%s without a value in one of its columns, %s with the values of an earlier row", countedRows(nulls), countedRows(repeated))
}

func countedRows(count int64) string {
	if count == 1 {
		return "1 row"
	}

	return fmt.Sprintf("%d rows", count)
}

// countViolations counts rows of files with null in the key, and rows whose key occurs before.
func (g *Ingest) countViolations(ctx context.Context, files []lake.File, key []lake.Column) (nulls, repeated int64, err error) {
	if len(files) == 0 {
		return 0, 0, nil
	}

	view := engine.View{Name: oldRows, Columns: engineColumns(key), Mapped: true}
	mounts := map[string]string{}

	release, err := g.Lake.FetchAll(ctx, files, func(path string, n int) error {
		mounts[fmt.Sprintf("%d%s", n, outputSuffix)] = path

		return nil
	})
	defer release()

	if err != nil {
		return 0, 0, err
	}

	for n := range files {
		view.Files = append(view.Files, fmt.Sprintf("%d%s", n, outputSuffix))
	}

	err = g.positions(ctx, mounts, engine.Query{Statement: countSQL(key), Views: []engine.View{view}, Form: engine.Rows}, func(f foundRow) error {
		nulls, repeated = f.A, f.B

		return nil
	})

	return nulls, repeated, err
}

// permits checks that the rows of an earlier snapshot satisfy the key of the dataset.
func (g *Ingest) permits(ctx context.Context, dataset catalog.Dataset, id uuid.UUID) error {
	if !dataset.Key.Declared() {
		return nil
	}

	table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

	var snapshot lake.Snapshot

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		snapshot, err = g.Lake.Snapshot(ctx, q, table, id)

		return err
	})
	if err != nil || snapshot.Rows == 0 {
		return err
	}

	files, err := g.Lake.Files(ctx, table, id)
	if err != nil {
		return err
	}

	columns, err := keyOf(snapshot.Columns, dataset.Key.Columns, "key")
	if err != nil {
		return fault.New(fault.Conflict, fmt.Sprintf("The snapshot lacks columns of the key %s. Remove the key, then restore the snapshot.", dataset.Key))
	}

	nulls, repeated, err := g.countViolations(ctx, files, columns)
	if err == nil && nulls+repeated > 0 {
		err = fault.New(fault.Conflict, fmt.Sprintf("The snapshot violates the key %s: %s. Remove the key, then restore the snapshot.", dataset.Key, violating(nulls, repeated)))
	}

	return err
}
