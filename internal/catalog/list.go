package catalog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Lists are ordered by id, which is the order of creation. The grants of the directory have the same order, so every
// page costs the same.

// entry is a position in the order of all datasets. With a nil dataset it means a namespace as a whole, which comes
// before its datasets.
type entry struct{ account, namespace, dataset uuid.UUID }

func (e entry) compare(other entry) int {
	return cmp.Or(
		bytes.Compare(e.account[:], other.account[:]),
		bytes.Compare(e.namespace[:], other.namespace[:]),
		bytes.Compare(e.dataset[:], other.dataset[:]))
}

// Position is a position in the list of everything that the caller may see: first the caller's own datasets, then
// those shared with the caller. The zero Position is the start of the list.
type Position struct {
	Shared                      bool
	Account, Namespace, Dataset uuid.UUID
}

// Item is a dataset in a list, with the username of its owner.
type Item struct {
	Dataset

	Owner     string
	MatchedIn []string // where a search found its words
}

// Datasets lists the datasets of a namespace that the caller may see.
//
// Faults: NotFound if the caller may see nothing in the namespace.
func (c Catalog) Datasets(ctx context.Context, who auth.Principal, at Path, after uuid.UUID, limit int) (page []Item, next uuid.UUID, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := c.datasets(ctx, q, who, at, after, limit+1)
		if err != nil {
			return err
		}

		if len(found) > limit {
			found = found[:limit]
			next = found[limit-1].ID
		}

		page, err = c.measured(ctx, q, found)

		return err
	})

	return page, next, err
}

func (c Catalog) datasets(ctx context.Context, q postgres.Querier, who auth.Principal, at Path, after uuid.UUID, limit int) ([]Dataset, error) {
	namespace, err := c.Visible(ctx, q, who, at)
	if err != nil {
		return nil, err
	}

	walk := walk{q: q, who: who, limit: limit, next: within(c.sharedEntries(q, who), namespace)}
	place := entry{namespace.Account, namespace.ID, after}

	if namespace.access.role(who) != "" {
		err = walk.namespace(ctx, place)
	} else {
		err = walk.from(ctx, place)
	}

	return walk.page, err
}

// Visible returns a namespace if the caller may see it as a whole or at least one dataset in it.
//
// Faults: NotFound.
func (c Catalog) Visible(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) (Namespace, error) {
	owner, err := c.owner(ctx, q, who, at.Username)
	if err != nil {
		return Namespace{}, err
	}

	namespace, err := selectNamespace(ctx, q, owner, nameKey(at.Namespace), who)
	if err != nil {
		return Namespace{}, err
	}

	if namespace == nil {
		namespace = &Namespace{Account: owner} // do the same work as for a namespace that the caller may not see, so that timing does not reveal which exist
	}

	if visible, err := c.isVisible(ctx, q, who, *namespace); err != nil || !visible || namespace.ID == uuid.Nil {
		return Namespace{}, orAbsent(err)
	}

	return *namespace, nil
}

// Names returns the names of the first datasets of a namespace that the caller may see.
//
// Faults: NotFound if the caller may see nothing in the namespace.
func (c Catalog) Names(ctx context.Context, q postgres.Querier, who auth.Principal, at Path, limit int) ([]string, error) {
	found, err := c.datasets(ctx, q, who, at, uuid.Nil, limit)
	names := make([]string, len(found))

	for i, d := range found {
		names[i] = d.Name
	}

	return names, err
}

// Seen returns those of the given datasets of an account that the caller may see, with their current names.
func (c Catalog) Seen(ctx context.Context, q postgres.Querier, who auth.Principal, account uuid.UUID, ids []uuid.UUID) ([]Item, error) {
	found, err := selectDatasetsByID(ctx, q, account, who, ids)
	if err != nil {
		return nil, err
	}

	return c.named(ctx, q, slices.DeleteFunc(found, func(d Dataset) bool { return d.access.role(who) == "" }))
}

// Neighbours returns the names of a dataset and of the newest datasets in its namespace. It does not check access;
// callers must filter before showing names.
func (c Catalog) Neighbours(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) (names map[uuid.UUID]string, err error) {
	return selectNeighbours(ctx, q, account, dataset, limit)
}

// All lists all datasets that the caller may see.
func (c Catalog) All(ctx context.Context, who auth.Principal, after Position, limit int) (page []Item, next *Position, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		var (
			found []Dataset
			place = entry{after.Account, after.Namespace, after.Dataset}
		)

		if !after.Shared && !isRestricted(who) {
			own := walk{q: q, who: who, limit: limit + 1, next: ownEntries(q, who), own: true}
			if err := own.from(ctx, place); err != nil {
				return err
			}

			found, place = own.page, entry{}
		}

		if len(found) <= limit {
			shared := walk{q: q, who: who, limit: limit + 1 - len(found), next: c.sharedEntries(q, who)}
			if err := shared.from(ctx, place); err != nil {
				return err
			}

			found = append(found, shared.page...)
		}

		if len(found) > limit {
			found = found[:limit]
			last := found[limit-1]
			next = &Position{Shared: last.Account != who.Account || isRestricted(who), Account: last.Account, Namespace: last.NamespaceID, Dataset: last.ID}
		}

		page, err = c.measured(ctx, q, found)

		return err
	})

	return page, next, err
}

func isRestricted(who auth.Principal) bool { return who.Token != nil && who.Token.Restricted }

func (c Catalog) named(ctx context.Context, q postgres.Querier, list []Dataset) ([]Item, error) {
	var accounts []uuid.UUID
	for _, dataset := range list {
		accounts = append(accounts, dataset.Account)
	}

	names, err := selectUsernames(ctx, q, accounts)
	page := make([]Item, 0, len(list))

	for _, dataset := range list {
		page = append(page, Item{Dataset: dataset, Owner: names[dataset.Account]})
	}

	return page, err
}

// measured is named with the sizes of the datasets.
func (c Catalog) measured(ctx context.Context, q postgres.Querier, list []Dataset) ([]Item, error) {
	if err := c.measure(ctx, q, list); err != nil {
		return nil, err
	}

	return c.named(ctx, q, list)
}

// measure sets the sizes of datasets. It asks for those of each account separately, as for everything that an account owns.
func (c Catalog) measure(ctx context.Context, q postgres.Querier, list []Dataset) error {
	datasets, snapshots := map[uuid.UUID][]uuid.UUID{}, map[uuid.UUID][]uuid.UUID{}

	for _, d := range list {
		if d.SnapshotID != uuid.Nil {
			datasets[d.Account], snapshots[d.Account] = append(datasets[d.Account], d.ID), append(snapshots[d.Account], d.SnapshotID)
		}
	}

	for account := range datasets {
		sizes, err := lake.Sizes(ctx, q, account, datasets[account], snapshots[account])
		if err != nil {
			return err
		}

		for i := range list {
			if size, found := sizes[list[i].SnapshotID]; found {
				list[i].Bytes = size
			}
		}
	}

	return nil
}

// source returns the next entries after a position, in order.
type source func(ctx context.Context, after entry, limit int) ([]entry, error)

// sharedEntries returns the source of what is shared with the caller or, for a restricted token, of what the token
// names.
func (c Catalog) sharedEntries(q postgres.Querier, who auth.Principal) source {
	if isRestricted(who) {
		return c.tokenEntries(q, who)
	}

	return func(ctx context.Context, after entry, limit int) ([]entry, error) {
		return selectShared(ctx, q, who, after, limit)
	}
}

// ownEntries returns the source of the caller's namespaces.
func ownEntries(q postgres.Querier, who auth.Principal) source {
	return func(ctx context.Context, after entry, limit int) ([]entry, error) {
		namespaces, err := selectOwnNamespaces(ctx, q, who, after.namespace, limit)

		var entries []entry
		for _, namespace := range namespaces {
			entries = append(entries, entry{who.Account, namespace.ID, uuid.Nil})
		}

		return entries, err
	}
}

// tokenEntries returns the source of the targets of a restricted token, which are few.
func (c Catalog) tokenEntries(q postgres.Querier, who auth.Principal) source {
	return func(ctx context.Context, after entry, limit int) ([]entry, error) {
		var entries []entry

		for _, target := range who.Token.Targets {
			found, err := c.targetEntries(ctx, q, who, target, after, limit)
			if err != nil {
				return nil, err
			}

			entries = append(entries, found...)
		}

		slices.SortFunc(entries, entry.compare)
		entries = slices.Compact(entries)

		return entries[:min(limit, len(entries))], nil
	}
}

// targetEntries returns the entries of one target of a token. For a dataset it is that dataset. For a namespace it is
// the namespace if the caller may see it as a whole, else the grants on its datasets.
func (c Catalog) targetEntries(ctx context.Context, q postgres.Querier, who auth.Principal, target auth.Target, after entry, limit int) ([]entry, error) {
	place := entry{target.Account, target.ID, uuid.Nil}

	if target.Kind == kindDataset {
		found, err := selectDatasetByID(ctx, q, target.Account, target.ID, who)
		if err != nil || found == nil {
			return nil, err
		}

		place = entry{target.Account, found.NamespaceID, target.ID}
	} else if whole, err := isWhole(ctx, q, who, place); err != nil || !whole {
		if err != nil {
			return nil, err
		}

		if place.compare(after) < 0 {
			place = after
		}

		entries, err := selectShared(ctx, q, who, place, limit)

		return slices.DeleteFunc(entries, func(e entry) bool { return e.namespace != target.ID || e.account != target.Account }), err
	}

	if place.compare(after) > 0 {
		return []entry{place}, nil
	}

	return nil, nil
}

// isWhole reports whether the caller may see a namespace as a whole.
func isWhole(ctx context.Context, q postgres.Querier, who auth.Principal, place entry) (bool, error) {
	switch {
	case !access{account: place.account, namespace: place.namespace}.reachableBy(who.Token):
		return false, nil
	case place.account == who.Account:
		return true, nil
	default:
		return sharesNamespace(ctx, q, who, place)
	}
}

// within limits a source to the entries of one namespace.
func within(next source, namespace Namespace) source {
	return func(ctx context.Context, after entry, limit int) ([]entry, error) {
		entries, err := next(ctx, after, limit)

		return slices.DeleteFunc(entries, func(e entry) bool { return e.namespace != namespace.ID || e.account != namespace.Account }), err
	}
}

// walk collects datasets from a source until the page is full. Each dataset passes the same decision as a read of
// that dataset.
type walk struct {
	q     postgres.Querier
	who   auth.Principal
	next  source
	limit int
	own   bool // the source is the caller's own namespaces; else own datasets are skipped

	page []Dataset
}

func (w *walk) from(ctx context.Context, place entry) error {
	// A page that begins inside a namespace that is visible as a whole first lists the rest of that namespace: the entry
	// of the namespace was on an earlier page.
	if place.dataset != uuid.Nil && place.dataset != uuid.Max {
		whole, err := isWhole(ctx, w.q, w.who, place)
		if err != nil {
			return err
		}

		if whole {
			if err := w.namespace(ctx, place); err != nil {
				return err
			}

			place.dataset = uuid.Max
		}
	}

	for len(w.page) < w.limit {
		entries, err := w.next(ctx, place, w.limit)
		if err != nil || len(entries) == 0 {
			return err
		}

		if place, err = w.take(ctx, entries); err != nil {
			return err
		}
	}

	return nil
}

// take collects the datasets of a run of entries and returns the position that it reached. A run ends before a
// namespace as a whole, because entries for single datasets in that namespace would count twice.
func (w *walk) take(ctx context.Context, entries []entry) (entry, error) {
	// Skip own datasets that are shared with a group of the owner: they were listed among the owner's own.
	if mine := entries[0].account == w.who.Account; mine && !w.own && !isRestricted(w.who) {
		return entry{w.who.Account, uuid.Max, uuid.Max}, nil
	}

	if whole := entries[0]; whole.dataset == uuid.Nil {
		err := w.namespace(ctx, whole)
		whole.dataset = uuid.Max

		return whole, err
	}

	run := 1
	for run < len(entries) && entries[run].dataset != uuid.Nil && entries[run].account == entries[0].account {
		run++
	}

	var ids []uuid.UUID
	for _, e := range entries[:run] {
		ids = append(ids, e.dataset)
	}

	found, err := selectDatasetsByID(ctx, w.q, entries[0].account, w.who, ids)
	if err != nil {
		return entry{}, err
	}

	// The statement orders the datasets by id alone; restore the order of the entries.
	for _, e := range entries[:run] {
		if i := slices.IndexFunc(found, func(d Dataset) bool { return d.ID == e.dataset }); i >= 0 {
			w.add(found[i])
		}
	}

	return entries[run-1], nil
}

// namespace collects the datasets of a namespace after a position in it.
func (w *walk) namespace(ctx context.Context, place entry) error {
	found, err := selectDatasetsOf(ctx, w.q, place.account, w.who, place.namespace, place.dataset, w.limit-len(w.page))
	for _, dataset := range found {
		w.add(dataset)
	}

	return err
}

func (w *walk) add(dataset Dataset) {
	if len(w.page) < w.limit && dataset.access.role(w.who) != "" {
		w.page = append(w.page, dataset)
	}
}
