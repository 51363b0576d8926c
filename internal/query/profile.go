package query

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// ColumnProfile summarises the values of a column.
type ColumnProfile = engine.ColumnProfile

// ValueCount is a value with the number of rows that have it.
type ValueCount = engine.ValueCount

// Profile summarises the values of a dataset at a snapshot.
type Profile struct {
	Snapshot   uuid.UUID
	ComputedAt time.Time
	Rows       int64
	Columns    []ColumnProfile
	Keys       [][]string
	Joins      []Join
}

// Join is a probable join: a column whose values probably occur in a column of another dataset that the caller may see.
type Join struct {
	Column string
	With   catalog.Item
	To     string
	Share  float64
}

// Profile returns the latest profile. The profile describes an earlier snapshot if rows were added since. If rows were
// removed since, it is not returned, because it could show removed values.
//
// Faults: NotFound, also while the dataset has no profile.
func (q *Query) Profile(ctx context.Context, who auth.Principal, at catalog.Path) (Profile, error) {
	made, err := q.profile(ctx, who, at)
	if err == nil && made == nil {
		return Profile{}, fault.New(fault.NotFound, "The dataset has no profile yet. It is computed when no rows have been added for a while.")
	}

	if err != nil {
		return Profile{}, err
	}

	return *made, nil
}

// profile returns the latest profile; nil if the dataset has none.
func (q *Query) profile(ctx context.Context, who auth.Principal, at catalog.Path) (*Profile, error) {
	var (
		dataset catalog.Dataset
		found   map[uuid.UUID]profiled
	)

	err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		if dataset, err = q.Catalog.Allow(ctx, db, who, auth.Viewer, at); err == nil {
			found, err = q.profiled(ctx, db, who, dataset.Account, []uuid.UUID{dataset.ID})
		}

		return err
	})

	one, ok := found[dataset.ID]
	if err != nil || !ok {
		return nil, err
	}

	if err := q.auditProfiles(ctx, who, dataset); err != nil {
		return nil, err
	}

	return q.readProfile(ctx, one)
}

// profiled is a profile whose content has not been read yet.
type profiled struct {
	lake.Profiled

	joins []Join
}

// profiled returns the profiles of datasets of one account, with their joins. The caller must be allowed to see the
// datasets; the joins are filtered here.
func (q *Query) profiled(ctx context.Context, db postgres.Querier, who auth.Principal, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]profiled, error) {
	made, err := q.Lake.Profiles(ctx, db, account, ids)
	if err != nil || len(made) == 0 {
		return nil, err
	}

	joins, err := q.joins(ctx, db, who, account, slices.Collect(maps.Keys(made)))
	found := make(map[uuid.UUID]profiled, len(made))

	for id, one := range made {
		found[id] = profiled{one, joins[id]}
	}

	return found, err
}

// joins returns the joins with datasets that the caller may see, under the current names of those datasets.
func (q *Query) joins(ctx context.Context, db postgres.Querier, who auth.Principal, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID][]Join, error) {
	found, err := q.Lake.Joins(ctx, db, account, ids)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	// Many joins lead to the same datasets.
	others := map[uuid.UUID]catalog.Item{}

	for _, list := range found {
		for _, j := range list {
			others[j.Other] = catalog.Item{}
		}
	}

	seen, err := q.Catalog.Seen(ctx, db, who, account, slices.Collect(maps.Keys(others)))
	for _, item := range seen {
		others[item.ID] = item
	}

	joins := map[uuid.UUID][]Join{}

	for id, list := range found {
		for _, j := range list { // what the caller may not see has no columns
			with := others[j.Other]
			if slices.ContainsFunc(with.Columns, func(c catalog.Column) bool { return strings.EqualFold(c.Name, j.To) }) {
				joins[id] = append(joins[id], Join{Column: j.Column, With: with, To: j.To, Share: j.Share})
			}
		}
	}

	return joins, err
}

// auditProfiles records in the audit that the profiles of datasets of one account were read.
func (q *Query) auditProfiles(ctx context.Context, who auth.Principal, datasets ...catalog.Dataset) error {
	entries := make([]audit.Entry, len(datasets))
	for i, d := range datasets {
		entries[i] = who.Audit(d.Account, q.Now(), "profile.get", d.Audit())
	}

	return q.DB.InTx(ctx, func(tx postgres.Tx) error { return audit.WriteTx(ctx, tx, entries...) })
}

func (q *Query) readProfile(ctx context.Context, found profiled) (*Profile, error) {
	content, ok := q.profiles.Get(found.Profile.Key)
	if !ok {
		if err := q.readObject(ctx, found.Profile, &content); err != nil {
			return nil, err
		}

		for i := range content.Columns {
			content.Columns[i].Sketch = nil // only loading compares them
		}

		if found.Profile.Size <= cachedProfile {
			q.profiles.Add(found.Profile.Key, content)
		}
	}

	return &Profile{
		Snapshot: found.Snapshot, ComputedAt: found.ComputedAt, Rows: found.Rows, Columns: content.Columns, Keys: content.Keys, Joins: found.joins,
	}, nil
}

// Profiles are parsed once: an object never changes, and a question reads up to a dozen of them. Callers must not change
// what they get. Profiles of very wide tables are left out, so that the memory is bounded.
const (
	cachedProfiles = 128
	cachedProfile  = 256 << 10 // bytes of the object
)

func newProfiles() *lru.Cache[string, engine.Profile] {
	cache, err := lru.New[string, engine.Profile](cachedProfiles)
	if err != nil {
		panic(err) // the size is a constant above zero
	}

	return cache
}

// readObject reads a JSON object that is stored with a table.
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
