package catalog

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// NamespaceItem is a namespace in a list, with the username of its owner.
type NamespaceItem struct {
	Namespace

	Owner string
}

// Namespaces lists the namespaces of a user that the caller may see, including those of which only single datasets
// are shared. If the caller may see nothing of the user, the list is empty, whether or not the user exists.
func (c Catalog) Namespaces(ctx context.Context, who auth.Principal, username string, after uuid.UUID, limit int) (page []NamespaceItem, next uuid.UUID, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		owner, err := c.owner(ctx, q, who, username)
		if err != nil {
			return err
		}

		list, err := c.namespaces(ctx, q, who, owner, after, limit+1)
		if err != nil {
			return err
		}

		if len(list) > limit {
			list = list[:limit]
			next = list[limit-1].ID
		}

		page, err = c.namedNamespaces(ctx, q, list)

		return err
	})

	return page, next, err
}

func (c Catalog) namespaces(ctx context.Context, q postgres.Querier, who auth.Principal, owner, after uuid.UUID, limit int) ([]Namespace, error) {
	if owner == who.Account && !isRestricted(who) {
		return selectOwnNamespaces(ctx, q, who, after, limit)
	}

	shared := c.sharedEntries(q, who)
	next := func(ctx context.Context, after entry, limit int) ([]entry, error) {
		entries, err := shared(ctx, after, limit)

		return slices.DeleteFunc(entries, func(e entry) bool { return e.account != owner }), err
	}

	return c.sharedNamespaces(ctx, q, who, next, entry{owner, after, uuid.Max}, limit)
}

// sharedNamespaces returns the namespaces of a source that the caller may see as a whole or in part, after a position.
func (c Catalog) sharedNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal, next source, place entry, limit int) (list []Namespace, err error) {
	// Continue after the namespace of each entry: one step for each namespace, not for each grant.
	for len(list) < limit {
		entries, err := next(ctx, place, 1)
		if err != nil {
			return nil, err
		}

		if len(entries) == 0 {
			break
		}

		place = entry{entries[0].account, entries[0].namespace, uuid.Max}

		found, err := first(selectNamespacesByID(ctx, q, place.account, who, []uuid.UUID{place.namespace}))
		if err != nil {
			return nil, err
		}

		if found != nil {
			visible, err := c.isVisible(ctx, q, who, *found)
			if err != nil {
				return nil, err
			}

			if visible {
				list = append(list, *found)
			}
		}
	}

	return list, nil
}

// AllNamespaces lists all namespaces that the caller may see, including those of which only single datasets are shared:
// first the caller's own, then those of others.
func (c Catalog) AllNamespaces(ctx context.Context, who auth.Principal, after Position, limit int) (page []NamespaceItem, next *Position, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		var (
			found []Namespace
			place = entry{after.Account, after.Namespace, uuid.Max}
		)

		if !after.Shared && !isRestricted(who) {
			if found, err = selectOwnNamespaces(ctx, q, who, after.Namespace, limit+1); err != nil {
				return err
			}

			place = entry{}
		}

		if len(found) <= limit {
			shared, err := c.sharedNamespaces(ctx, q, who, c.foreignEntries(q, who), place, limit+1-len(found))
			if err != nil {
				return err
			}

			found = append(found, shared...)
		}

		if page, next = nil, nil; len(found) > limit {
			found = found[:limit]
			last := found[limit-1]
			next = &Position{Shared: last.Account != who.Account || isRestricted(who), Account: last.Account, Namespace: last.ID}
		}

		page, err = c.namedNamespaces(ctx, q, found)

		return err
	})

	return page, next, err
}

// foreignEntries returns the source of what others share with the caller, without own namespaces that are shared with a
// group of the owner: they are listed among the owner's own. A restricted token has no such list.
func (c Catalog) foreignEntries(q postgres.Querier, who auth.Principal) source {
	next := c.sharedEntries(q, who)

	return func(ctx context.Context, after entry, limit int) ([]entry, error) {
		entries, err := next(ctx, after, limit)
		if err != nil || len(entries) == 0 || entries[0].account != who.Account || isRestricted(who) {
			return entries, err
		}

		return next(ctx, entry{who.Account, uuid.Max, uuid.Max}, limit)
	}
}

func (c Catalog) namedNamespaces(ctx context.Context, q postgres.Querier, list []Namespace) ([]NamespaceItem, error) {
	accounts := make([]uuid.UUID, len(list))
	for i, namespace := range list {
		accounts[i] = namespace.Account
	}

	names, err := selectUsernames(ctx, q, accounts)
	page := make([]NamespaceItem, len(list))

	for i, namespace := range list {
		page[i] = NamespaceItem{Namespace: namespace, Owner: names[namespace.Account]}
	}

	return page, err
}

// isVisible reports whether the caller may see a namespace as a whole or at least one dataset in it.
func (c Catalog) isVisible(ctx context.Context, q postgres.Querier, who auth.Principal, n Namespace) (bool, error) {
	if n.access.role(who) != "" {
		return true, nil
	}

	one := walk{q: q, who: who, limit: 1, next: within(c.sharedEntries(q, who), n)}
	err := one.from(ctx, entry{n.Account, n.ID, uuid.Nil})

	return len(one.page) > 0, err
}
