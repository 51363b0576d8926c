package query

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

// Origin is where an entry of semantics comes from.
type Origin string

// The origins.
const (
	Drafted   Origin = "drafted"   // by Quern, from the profile
	Confirmed Origin = "confirmed" // by a person
	Rejected  Origin = "rejected"  // drafted by Quern and rejected by a person: not used
)

// Entry is an entry of semantics with its origin.
type Entry[T any] struct {
	Value  T
	Origin Origin
}

// Semantics is what a dataset means, as a caller sees it: what people said, laid over a draft.
type Semantics struct {
	Revision int64 // of what people said
	Row      Entry[string]
	Columns  map[string]Entry[meaning.Column]
	Joins    []Entry[meaning.Join]
	Measures []Entry[meaning.Measure]
}

// Semantics returns the semantics of a dataset. Joins with datasets that the caller may not see are left out, and so are
// measures that need them. It contains no value of the dataset, so it is not recorded in the audit.
//
// Faults: NotFound.
func (q *Query) Semantics(ctx context.Context, who auth.Principal, at catalog.Path) (Semantics, error) {
	m, err := q.meant(ctx, who, auth.Viewer, at)
	if err != nil {
		return Semantics{}, err
	}

	return m.show(), nil
}

// PutSemantics replaces what people said about a dataset. Joins that the caller may not see stay, with the measures that
// need them. If expected is not nil, the current revision must be one of the expected revisions.
//
// Faults: NotFound, Forbidden, ValidationFailed, PreconditionFailed if the current revision is not expected.
func (q *Query) PutSemantics(ctx context.Context, who auth.Principal, at catalog.Path, want Semantics, expected []int64) (Semantics, error) {
	m, err := q.meant(ctx, who, auth.Editor, at)
	if err != nil {
		return Semantics{}, err
	}

	c := checking{meant: m, want: want}
	if err := q.findTargets(ctx, who, at, &c); err != nil {
		return Semantics{}, err
	}

	saved, err := c.check()
	if err != nil {
		return Semantics{}, err
	}

	m.saved, err = q.Catalog.PutSemantics(ctx, who, at, m.item.ID, expected, func(current meaning.Saved) meaning.Saved {
		return withUnseen(saved, current, m.targets)
	})
	if err != nil {
		return Semantics{}, err
	}

	for _, target := range c.targets {
		m.targets[catalog.TargetKey(target.Dataset)] = target
	}

	return m.show(), nil
}

// TrySemantics makes the checks of PutSemantics and saves nothing. It returns what is wrong, each fault with the path of its
// entry.
//
// Faults: NotFound, Forbidden.
func (q *Query) TrySemantics(ctx context.Context, who auth.Principal, at catalog.Path, want Semantics) ([]fault.Sub, error) {
	m, err := q.meant(ctx, who, auth.Editor, at)
	if err != nil {
		return nil, err
	}

	c := checking{meant: m, want: want}
	if err := q.findTargets(ctx, who, at, &c); err != nil {
		return nil, err
	}

	_, _ = c.check() // the error has only the first faults

	return c.faults, nil
}

// Said is what people said about a dataset, with the current names of other datasets.
type Said struct {
	Saved      meaning.Saved
	Definition catalog.Definition
}

// Said returns what people said about datasets of one account, by id, without drafts. The caller must be allowed to see them.
func (q *Query) Said(ctx context.Context, who auth.Principal, items []catalog.Item) (map[uuid.UUID]Said, error) {
	found := map[uuid.UUID]Said{}
	if len(items) == 0 {
		return found, nil
	}

	ids := make([]uuid.UUID, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}

	err := q.DB.Do(ctx, func(db postgres.Querier) error {
		defined, err := q.Catalog.Definitions(ctx, db, items[0].Account, ids)
		if err != nil {
			return err
		}

		said, err := q.said(ctx, db, who, items[0].Account, ids, nil)

		for _, item := range items {
			one := said.of(item, defined[item.ID], nil)
			found[item.ID] = Said{one.named(), one.definition}
		}

		return err
	})

	return found, err
}

// meant is what the semantics of a dataset are made from.
type meant struct {
	item       catalog.Item
	definition catalog.Definition
	profile    *Profile // nil if there is none
	unique     map[uuid.UUID][]string
	saved      catalog.Semantics
	targets    map[string]catalog.Item // that saved joins name and the caller may see, by their keys
}

func (q *Query) meant(ctx context.Context, who auth.Principal, need auth.Role, at catalog.Path) (m meant, err error) {
	var (
		described catalog.Item
		defined   map[uuid.UUID]catalog.Definition
		found     map[uuid.UUID]profiled
		said      said
	)

	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		dataset, err := q.Catalog.Allow(ctx, db, who, need, at)
		if err != nil {
			return err
		}

		ids := []uuid.UUID{dataset.ID}
		described = catalog.Item{Dataset: dataset, Owner: who.NameOf(at.Username)}

		if defined, err = q.Catalog.Definitions(ctx, db, dataset.Account, ids); err != nil {
			return err
		}

		if found, err = q.profiled(ctx, db, who, dataset.Account, ids); err != nil {
			return err
		}

		said, err = q.said(ctx, db, who, dataset.Account, ids, found)

		return err
	})
	if err != nil {
		return m, err
	}

	var profile *Profile

	if one, ok := found[described.ID]; ok {
		if profile, err = q.readProfile(ctx, one); err != nil {
			return m, err
		}
	}

	return said.of(described, defined[described.ID], profile), nil
}

// said is what people said about datasets, with what is needed to read it and to draft the rest.
type said struct {
	saved   map[uuid.UUID]catalog.Semantics
	targets map[string]catalog.Item
	unique  map[uuid.UUID][]string // columns of the datasets of probable joins
}

// said finds what people said about datasets of one account, with one statement for all of them. The caller must be
// allowed to see the datasets.
func (q *Query) said(ctx context.Context, db postgres.Querier, who auth.Principal, account uuid.UUID, ids []uuid.UUID, found map[uuid.UUID]profiled) (s said, err error) {
	if s.saved, err = q.Catalog.Semantics(ctx, db, account, ids); err != nil {
		return s, err
	}

	var keys []string

	for _, one := range s.saved {
		for _, j := range slices.Concat(one.Saved.Joins, one.Saved.RejectedJoins) {
			keys = append(keys, j.To)
		}
	}

	if s.targets, err = q.Catalog.JoinTargets(ctx, db, who, keys); err != nil {
		return s, err
	}

	var others []uuid.UUID

	for _, one := range found {
		for _, j := range one.joins {
			others = append(others, j.With.ID)
		}
	}

	if len(others) > 0 {
		slices.SortFunc(others, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
		s.unique, err = q.Lake.Unique(ctx, db, account, slices.Compact(others))
	}

	return s, err
}

func (s said) of(item catalog.Item, definition catalog.Definition, profile *Profile) meant {
	return meant{item: item, definition: definition, profile: profile, unique: s.unique, saved: s.saved[item.ID], targets: s.targets}
}

// effective returns what people said, laid over a draft.
func (m meant) effective() meaning.Meaning { return m.named().Over(m.draft()) }

// draft drafts the meaning of the columns that the dataset has now. Without a profile it knows only names, types and
// descriptions.
func (m meant) draft() meaning.Meaning {
	source := meaning.Source{Name: m.item.Name, Columns: make([]meaning.SourceColumn, len(m.item.Columns))}

	for i, c := range m.item.Columns {
		source.Columns[i] = meaning.SourceColumn{Name: c.Name, Type: c.Type, Description: m.definition.SchemaDefinition[c.Name]}
	}

	source.Keys = keysOf(m.item.Dataset, m.profile)

	if m.profile == nil {
		return meaning.Draft(source)
	}

	source.Rows = m.profile.Rows

	for i := range source.Columns {
		to := &source.Columns[i]

		n := slices.IndexFunc(m.profile.Columns, func(c ColumnProfile) bool { return c.Name == to.Name && c.Type == to.Type })
		if n < 0 {
			continue // added after the profile
		}

		c := m.profile.Columns[n]
		to.Distinct, to.Nulls, to.Min, to.Max = c.Distinct, c.Nulls, cellValue(c.Min), cellValue(c.Max)

		for _, top := range c.TopValues {
			to.Values = append(to.Values, cellValue(top.Value))
		}
	}

	for _, j := range m.profile.Joins {
		if hasColumn(m.item, j.Column) {
			source.Joins = append(source.Joins, meaning.SourceJoin{
				Column: j.Column, To: relative(m.item, j.With), Key: j.To, Share: j.Share, IsKey: slices.Contains(m.unique[j.With.ID], j.To),
			})
		}
	}

	return meaning.Draft(source)
}

// cellValue returns the value of a cell: a number, text or boolean; nil if there is none.
func cellValue(cell json.RawMessage) (value any) {
	if json.Unmarshal(cell, &value) != nil {
		return nil
	}

	return value
}

// show returns the semantics with the origin of each entry.
func (m meant) show() Semantics {
	saved := m.named()
	effective := saved.Over(m.draft())
	shown := Semantics{Revision: m.saved.Revision, Columns: make(map[string]Entry[meaning.Column], len(effective.Columns))}

	shown.Row = Entry[string]{effective.Row, originOf(saved.Row != "")}

	for name, c := range effective.Columns {
		shown.Columns[name] = Entry[meaning.Column]{c, originOf(c.Confirmed)}
	}

	for _, j := range effective.Joins {
		shown.Joins = append(shown.Joins, Entry[meaning.Join]{j, originOf(j.Confirmed)})
	}

	for _, j := range saved.RejectedJoins {
		shown.Joins = append(shown.Joins, Entry[meaning.Join]{j, Rejected})
	}

	for _, one := range effective.Measures {
		shown.Measures = append(shown.Measures, Entry[meaning.Measure]{one, originOf(one.Confirmed)})
	}

	for _, one := range saved.RejectedMeasures {
		shown.Measures = append(shown.Measures, Entry[meaning.Measure]{one, Rejected})
	}

	return shown
}

func originOf(confirmed bool) Origin {
	if confirmed {
		return Confirmed
	}

	return Drafted
}
