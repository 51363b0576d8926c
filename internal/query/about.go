package query

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

// About describes a dataset without reading its rows: its catalog entry, definition, profile and meaning.
type About struct {
	catalog.Item

	Definition catalog.Definition
	Profile    *Profile        // nil if no profile exists or it was not requested
	Meaning    meaning.Meaning // without a profile, drafted from names and types only
}

// Keys returns sets of columns that identify a row: the declared key, and those that the profile found.
func (a About) Keys() [][]string { return keysOf(a.Dataset, a.Profile) }

func keysOf(d catalog.Dataset, profile *Profile) (keys [][]string) {
	if declared := d.KeyColumns(); declared != nil {
		keys = append(keys, declared)
	}

	if profile != nil {
		for _, key := range profile.Keys {
			if !d.Key.Has(key) {
				keys = append(keys, key)
			}
		}
	}

	return keys
}

// Defined returns datasets with their definitions and what people said they mean, without profiles and drafts. It does not
// check access: the caller must have listed the datasets just before.
func (q *Query) Defined(ctx context.Context, who auth.Principal, datasets []catalog.Item) ([]About, error) {
	accounts := map[uuid.UUID][]uuid.UUID{}
	for _, d := range datasets {
		accounts[d.Account] = append(accounts[d.Account], d.ID)
	}

	list := make([]About, len(datasets))
	for i, d := range datasets {
		list[i].Item = d
	}

	return list, q.DB.Do(ctx, func(db postgres.Querier) error {
		for account, ids := range accounts {
			definitions, err := q.Catalog.Definitions(ctx, db, account, ids)
			if err != nil {
				return err
			}

			said, err := q.said(ctx, db, who, account, ids, nil)
			if err != nil {
				return err
			}

			for i, d := range datasets {
				if d.Account == account {
					list[i].Definition = definitions[d.ID]
					list[i].Meaning = said.of(d, definitions[d.ID], nil).named().Over(meaning.Meaning{})
				}
			}
		}

		return nil
	})
}

// About describes datasets, in the order given. The profile is included for datasets for which valued returns true.
// Datasets that the caller may not see are left out. A profile that cannot be read is logged and left nil.
func (q *Query) About(ctx context.Context, who auth.Principal, datasets []catalog.Item, valued func(catalog.Item) bool) ([]About, error) {
	accounts := map[uuid.UUID][]uuid.UUID{}
	for _, d := range datasets {
		accounts[d.Account] = append(accounts[d.Account], d.ID)
	}

	known := map[uuid.UUID]*About{}

	for account, ids := range accounts {
		if err := q.aboutAccount(ctx, who, account, ids, valued, known); err != nil {
			return nil, err
		}
	}

	var list []About

	for _, d := range datasets {
		if one := known[d.ID]; one != nil {
			list = append(list, *one)
		}
	}

	return list, nil
}

func (q *Query) aboutAccount(ctx context.Context, who auth.Principal, account uuid.UUID, ids []uuid.UUID, valued func(catalog.Item) bool, known map[uuid.UUID]*About) error {
	var (
		seen        []catalog.Item
		definitions map[uuid.UUID]catalog.Definition
		found       map[uuid.UUID]profiled
		said        said
	)

	err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		if seen, err = q.Catalog.Seen(ctx, db, who, account, ids); err != nil {
			return err
		}

		if definitions, err = q.Catalog.Definitions(ctx, db, account, ids); err != nil {
			return err
		}

		var wanted []uuid.UUID

		for _, item := range seen {
			if valued(item) {
				wanted = append(wanted, item.ID)
			}
		}

		if found, err = q.profiled(ctx, db, who, account, wanted); err != nil {
			return err
		}

		said, err = q.said(ctx, db, who, account, ids, found)

		return err
	})
	if err != nil {
		return err
	}

	var read []catalog.Dataset

	for _, item := range seen {
		known[item.ID] = &About{Item: item, Definition: definitions[item.ID]}

		if _, ok := found[item.ID]; ok {
			read = append(read, item.Dataset)
		}
	}

	err = q.readProfiles(ctx, who, read, found, known)

	for _, item := range seen {
		one := known[item.ID]
		one.Meaning = said.of(item, one.Definition, one.Profile).effective()
	}

	return err
}

// readProfiles reads the contents of profiles, and records in the audit that they were read.
func (q *Query) readProfiles(ctx context.Context, who auth.Principal, read []catalog.Dataset, found map[uuid.UUID]profiled, known map[uuid.UUID]*About) error {
	if len(read) == 0 {
		return nil
	}

	written := make(chan error, 1)

	go func() { written <- fault.Try(func() error { return q.auditProfiles(ctx, who, read...) }) }()

	var group sync.WaitGroup

	for batch := range slices.Chunk(read, matchers) {
		for _, d := range batch {
			group.Go(func() {
				err := fault.Try(func() (err error) {
					known[d.ID].Profile, err = q.readProfile(ctx, found[d.ID])

					return err
				})
				if err != nil { // a question can be answered without the profile
					q.Log.WarnContext(ctx, "a profile cannot be read", "dataset", d.ID, "error", err)
				}
			})
		}

		group.Wait()
	}

	return <-written
}
