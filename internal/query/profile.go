package query

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// ColumnProfile is what the values of a column look like.
type ColumnProfile = engine.ColumnProfile

// Profile is what the values of a dataset look like, at a snapshot.
type Profile struct {
	Snapshot   uuid.UUID
	ComputedAt time.Time
	Rows       int64
	Columns    []ColumnProfile
	Keys       [][]string
	Joins      []Join
}

// Join is a column that probably has the values of a column of another dataset that the caller may see.
type Join struct {
	Column string
	With   catalog.Item
	To     string
	Share  float64
}

// Profile gives the latest profile. It is of an earlier snapshot if rows were added since, and absent if rows were
// taken away since: what is gone is not shown.
//
// Faults: NotFound, also until there is a first one.
func (q *Query) Profile(ctx context.Context, who auth.Principal, at catalog.Path) (Profile, error) {
	made, err := q.profile(ctx, who, at)
	if err == nil && made == nil {
		return Profile{}, fault.New(fault.NotFound, "The dataset has no profile yet. It is made when nothing was added for a while.")
	}

	if err != nil {
		return Profile{}, err
	}

	return *made, nil
}

// profile is nil if there is none.
func (q *Query) profile(ctx context.Context, who auth.Principal, at catalog.Path) (*Profile, error) {
	var (
		dataset catalog.Dataset
		found   *lake.Profiled
		made    Profile
	)

	err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		if dataset, err = q.Catalog.Allow(ctx, db, who, auth.Viewer, at); err != nil {
			return err
		}

		table := lake.Table{Account: dataset.Account, Dataset: dataset.ID}

		if found, err = q.Lake.Profiled(ctx, db, table); err != nil || found == nil {
			return err
		}

		made.Joins, err = q.joins(ctx, db, who, table)

		return err
	})
	if err != nil || found == nil {
		return nil, err
	}

	if err := q.DB.InTx(ctx, func(tx postgres.Tx) error {
		return audit.WriteTx(ctx, tx, who.Audit(dataset.Account, q.Now(), "profile.get", dataset.Audit()))
	}); err != nil {
		return nil, err
	}

	var content engine.Profile
	if err := q.readObject(ctx, found.Profile, &content); err != nil {
		return nil, err
	}

	made.Snapshot, made.ComputedAt, made.Rows = found.Snapshot, found.ComputedAt, found.Rows
	made.Columns, made.Keys = content.Columns, content.Keys

	return &made, nil
}

// joins are those with what the caller may see, under the names that it has now.
func (q *Query) joins(ctx context.Context, db postgres.Querier, who auth.Principal, t lake.Table) (joins []Join, err error) {
	found, err := q.Lake.Joins(ctx, db, t)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	var ids []uuid.UUID
	for _, j := range found {
		ids = append(ids, j.Other)
	}

	seen, err := q.Catalog.Seen(ctx, db, who, t.Account, ids)
	if err != nil {
		return nil, err
	}

	for _, j := range found {
		i := slices.IndexFunc(seen, func(item catalog.Item) bool { return item.ID == j.Other })
		if i < 0 || !slices.ContainsFunc(seen[i].Columns, func(c catalog.Column) bool { return strings.EqualFold(c.Name, j.To) }) {
			continue
		}

		joins = append(joins, Join{Column: j.Column, With: seen[i], To: j.To, Share: j.Share})
	}

	return joins, nil
}

// readObject reads JSON that stands beside a table.
func (q *Query) readObject(ctx context.Context, object lake.Object, into any) error {
	path, release, err := q.Lake.Fetch(ctx, object.File())
	if err != nil {
		return err
	}
	defer release()

	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("the object %s: %w", object.Key, err)
	}

	return nil
}
