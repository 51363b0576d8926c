package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Deleted is a dataset or a namespace of the caller that was deleted.
type Deleted struct {
	ID        uuid.UUID
	Kind      string // namespace or dataset
	Namespace string
	Dataset   string // "" for a namespace
	DeletedAt time.Time
	ErasedAt  time.Time // when the grace period ends
}

// Deleted lists what the caller can restore, starting with what was deleted last. The zero Position is the start of the
// list; a zero next means that nothing follows.
//
// Faults: Forbidden.
func (c Catalog) Deleted(ctx context.Context, who auth.Principal, after audit.Position, limit int) (page []Deleted, next audit.Position, err error) {
	if err := mayRestore(who); err != nil {
		return nil, next, err
	}

	if after == (audit.Position{}) {
		after.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		page, err = c.restorable(ctx, q, who.Account, after, limit+1)

		return err
	})

	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].position()
	}

	return page, next, err
}

func (d Deleted) position() audit.Position { return audit.Position{At: d.DeletedAt, ID: d.ID} }

// restorable returns tombstones without the datasets whose table is being removed or does not exist: the removal began before
// a longer grace period was configured, or a transfer to this account was interrupted.
func (c Catalog) restorable(ctx context.Context, q postgres.Querier, account uuid.UUID, after audit.Position, limit int) (list []Deleted, err error) {
	for more := true; more && len(list) < limit; {
		found, err := selectDeleted(ctx, q, account, c.restorableSince(), after, limit)
		if err != nil || len(found) == 0 {
			return list, err
		}

		ids := make([]uuid.UUID, len(found))
		for i, one := range found {
			ids[i] = one.ID
		}

		kept, err := lake.Kept(ctx, q, account, ids)
		if err != nil {
			return nil, err
		}

		for _, one := range found {
			if one.Kind == kindNamespace || slices.Contains(kept, one.ID) {
				one.ErasedAt = one.DeletedAt.Add(c.DeleteGrace)
				list = append(list, one)
			}
		}

		after, more = found[len(found)-1].position(), len(found) == limit
	}

	return list[:min(limit, len(list))], nil
}

// restorableSince is the earliest time of a deletion whose grace period has not ended.
func (c Catalog) restorableSince() time.Time { return c.now().Add(-c.DeleteGrace) }

func mayRestore(who auth.Principal) error {
	if !who.Administers(who.Account) {
		return fault.New(fault.Forbidden, "This requires an unrestricted token with the role owner.")
	}

	return nil
}

// Restoration is a request to restore a dataset or a namespace.
type Restoration struct {
	ID   uuid.UUID
	Name string // the name that it gets; "" means its former name
}

// Restore restores a dataset with its rows, definition, semantics and grants, or a namespace with its grants. A dataset that was deleted
// before its namespace stays deleted. If it has been restored already, nothing is changed.
//
// The cleanup claims a table before it removes the first object, and so does Restore: one of the two finds that it is too late.
//
// Faults: Forbidden, NotFound if the caller has deleted nothing with this id or its grace period has ended, Conflict if the
// name is taken.
func (c Catalog) Restore(ctx context.Context, who auth.Principal, want Restoration) (restored Deleted, err error) {
	if err := mayRestore(who); err != nil {
		return Deleted{}, err
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		restored, err = c.restoreDatasetTx(ctx, tx, who, want)
		if fault.Is(err, fault.NotFound) {
			restored, err = c.restoreNamespaceTx(ctx, tx, who, want)
		}

		return err
	})

	return restored, err
}

func (c Catalog) restoreDatasetTx(ctx context.Context, tx postgres.Tx, who auth.Principal, want Restoration) (Deleted, error) {
	found, deletedAt, err := lockDatasetByID(ctx, tx, who.Account, want.ID)
	if err != nil || found == nil {
		return Deleted{}, orAbsent(err)
	}

	switch {
	case deletedAt == nil:
		return restoredDataset(*found), alreadyRestored(want.Name, found.Name, found.Namespace+"/"+found.Name)
	case deletedAt.Before(c.restorableSince()):
		return Deleted{}, fault.Absent()
	}

	entry := who.Audit(who.Account, c.now(), "dataset.restore", found.Audit())
	if want.Name != "" {
		entry.Detail = DatasetChange{Name: want.Name}.describe()
		found.Name = want.Name
	}

	err = c.reviveTx(ctx, tx, found, entry, otherName)

	return restoredDataset(*found), err
}

func restoredDataset(d Dataset) Deleted {
	return Deleted{ID: d.ID, Kind: kindDataset, Namespace: d.Namespace, Dataset: d.Name}
}

func (c Catalog) restoreNamespaceTx(ctx context.Context, tx postgres.Tx, who auth.Principal, want Restoration) (Deleted, error) {
	found, deletedAt, err := lockNamespaceByID(ctx, tx, who.Account, want.ID)
	if err != nil || found == nil {
		return Deleted{}, orAbsent(err)
	}

	restored := Deleted{ID: found.ID, Kind: kindNamespace, Namespace: found.Name}

	switch {
	case deletedAt == nil:
		return restored, alreadyRestored(want.Name, found.Name, found.Name)
	case deletedAt.Before(c.restorableSince()):
		return Deleted{}, fault.Absent()
	}

	entry := who.Audit(who.Account, c.now(), "namespace.restore", found.audit())
	if want.Name != "" {
		entry.Detail = DatasetChange{Name: want.Name}.describe()
		restored.Namespace = want.Name
	}

	if _, err := reviveNamespace(ctx, tx, who.Account, found.ID, restored.Namespace); err != nil {
		if _, taken := postgres.ViolatesUnique(err); taken {
			return Deleted{}, orTaken(nil, fmt.Sprintf("Another namespace is named %s now. %s", restored.Namespace, otherName))
		}

		return Deleted{}, err
	}

	return restored, audit.WriteTx(ctx, tx, entry)
}

// What a person can do if a name is taken. An operator cannot choose another name.
const (
	otherName = "Rename or delete it, or restore this one under another name."
	freeName  = "Rename or delete it first."
)

// alreadyRestored returns a fault if something that is not deleted should get another name.
func alreadyRestored(want, name, path string) error {
	if want == "" || nameKey(want) == nameKey(name) {
		return nil
	}

	return fault.New(fault.Conflict, fmt.Sprintf("It is not deleted: it is %s. Rename it to change its name.", path))
}

// reviveTx turns a tombstone back into a dataset with the name that d has, in its former namespace or in the one that has
// that name now. It sets the namespace of d. The audit entry says who restores it, and advice what to do if the name is taken.
func (c Catalog) reviveTx(ctx context.Context, tx postgres.Tx, d *Dataset, entry audit.Entry, advice string) error {
	if err := c.reviveHome(ctx, tx, d, entry); err != nil {
		return err
	}

	if err := reviveDataset(ctx, tx, *d, c.now()); err != nil {
		if _, taken := postgres.ViolatesUnique(err); taken {
			return orTaken(nil, fmt.Sprintf("Another dataset is named %s/%s now. %s", d.Namespace, d.Name, advice))
		}

		return err
	}

	if err := c.indexTx(ctx, tx, d.Account, d.ID); err != nil {
		return err
	}

	if err := lake.KeepTableTx(ctx, tx, d.table()); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, entry)
}

// reviveHome finds the namespace of a dataset that is restored, locks it against deletion, and sets it in d. If no namespace
// has the name of the former one, that one is restored without its grants: a person who restores one dataset does not mean to
// share everything that will be in the namespace.
func (c Catalog) reviveHome(ctx context.Context, tx postgres.Tx, d *Dataset, by audit.Entry) error {
	former := access{account: d.Account, namespace: d.NamespaceID}

	for {
		if isLive, err := holdTarget(ctx, tx, &former); err != nil || isLive {
			return err
		}

		home, err := holdNamespace(ctx, tx, d.Account, nameKey(d.Namespace))
		if err != nil {
			return err
		}

		if home != nil {
			err := moveInverse(ctx, tx, *d, home.ID)
			d.NamespaceID, d.Namespace = home.ID, home.Name

			return err
		}

		revived, err := reviveNamespace(ctx, tx, d.Account, d.NamespaceID, d.Namespace)
		if _, taken := postgres.ViolatesUnique(err); taken {
			return orTaken(nil, "A namespace with this name is being created. Try again.")
		}

		if err != nil {
			return err
		}

		if revived {
			by.Action, by.Detail = "namespace.restore", ""
			by.Target = d.AuditNamespace()

			if err := deleteGrantsOn(ctx, tx, former); err != nil {
				return err
			}

			return audit.WriteTx(ctx, tx, by)
		}
	}
}

// ForgetDatasetTx removes a deleted dataset whose table was removed for good, with its definitions, semantics, grants and what people
// chose for its words. It does nothing for a dataset that is not deleted.
func (c Catalog) ForgetDatasetTx(ctx context.Context, tx postgres.Tx, account, id uuid.UUID) error {
	gone, err := forgetDataset(ctx, tx, account, id)
	if err != nil || gone == nil {
		return err
	}

	return deleteGrantsOn(ctx, tx, *gone)
}

const eraseBatch = 100

// EraseNamespaces deletes the grants of deleted namespaces whose grace period has ended. They can no longer be restored.
func (c Catalog) EraseNamespaces(ctx context.Context) error {
	until := c.restorableSince()

	for {
		var due []access

		err := c.DB.Do(ctx, func(q postgres.Querier) (err error) {
			due, err = selectErasable(ctx, q, until, eraseBatch)

			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}

		for _, one := range due {
			if err := c.DB.InTx(ctx, func(tx postgres.Tx) error {
				// The namespace may have been restored since.
				if isDue, err := eraseNamespace(ctx, tx, one, until); err != nil || !isDue {
					return err
				}

				return deleteGrantsOn(ctx, tx, one)
			}); err != nil {
				return err
			}
		}
	}
}
