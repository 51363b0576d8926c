package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// What operators do: commands on the database, audited, with no HTTP surface.

// RestoreDataset brings back the dataset that was last deleted at a path, with its definition and grants.
//
// Faults: NotFound if there is none, or the grace is over; Conflict if the name is taken again.
func (c Catalog) RestoreDataset(ctx context.Context, at Path, grace time.Duration) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		account, err := selectAccountID(ctx, tx, strings.ToLower(at.Username))
		if err != nil {
			return err
		}

		found, err := lockTombstone(ctx, tx, account, nameKey(at.Namespace), nameKey(at.Dataset), c.now().Add(-grace))
		if err != nil {
			return err
		}

		if found == nil {
			return fault.New(fault.NotFound, fmt.Sprintf("Nothing that was deleted at %s can be restored.", at))
		}

		return c.reviveTx(ctx, tx, *found, "dataset.restore")
	})
}

// reviveTx makes a tombstone a dataset again, in its namespace or in the one that has its name now.
func (c Catalog) reviveTx(ctx context.Context, tx postgres.Tx, d Dataset, action string) error {
	home, err := holdNamespace(ctx, tx, d.Account, nameKey(d.Namespace))
	if err != nil {
		return err
	}

	if home == nil {
		if err := reviveNamespace(ctx, tx, d.Account, d.NamespaceID); err != nil {
			return err
		}
	} else if home.ID != d.NamespaceID {
		if err := moveInverse(ctx, tx, d, home.ID); err != nil {
			return err
		}

		d.NamespaceID = home.ID
	}

	if err := reviveDataset(ctx, tx, d, c.now()); err != nil {
		if _, taken := postgres.ViolatesUnique(err); taken {
			return orTaken(nil, "Another dataset has the name now. Rename it first.")
		}

		return err
	}

	return audit.WriteTx(ctx, tx, audit.Entry{Account: d.Account, At: c.now(), Actor: audit.Operator, Action: action, Target: d.audit()})
}

// TransferDataset hands a dataset over to another user, into a namespace of the same name. Definition and
// grants go along. No transaction touches both accounts: a hidden copy is made, then the original goes,
// then the copy is shown. If it is cut off between the last two, RestoreDataset at the new place ends it.
//
// Faults: NotFound, Conflict if the new owner has a dataset of the name.
func (c Catalog) TransferDataset(ctx context.Context, at Path, newOwner string) error {
	var (
		source Dataset
		target auth.Principal
		moved  Dataset
	)

	err := c.DB.Do(ctx, func(q postgres.Querier) (err error) {
		source, target, err = c.transferParties(ctx, q, at, newOwner)

		return err
	})
	if err != nil {
		return err
	}

	var copied contents
	if err := c.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		copied, err = selectContents(ctx, tx, source)

		return err
	}); err != nil {
		return err
	}

	if err := c.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		moved, err = c.receiveTx(ctx, tx, target, source, copied)

		return err
	}); err != nil {
		return err
	}

	if err := c.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := removeDataset(ctx, tx, source); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, audit.Entry{
			Account: source.Account, At: c.now(), Actor: audit.Operator, Action: "dataset.transfer", Target: source.audit(), Detail: newOwner,
		})
	}); err != nil {
		return err
	}

	return c.DB.InTx(ctx, func(tx postgres.Tx) error { return c.reviveTx(ctx, tx, moved, "dataset.receive") })
}

func (c Catalog) transferParties(ctx context.Context, q postgres.Querier, at Path, newOwner string) (Dataset, auth.Principal, error) {
	newOwner = strings.ToLower(newOwner)

	from, err := selectAccountID(ctx, q, strings.ToLower(at.Username))
	if err != nil {
		return Dataset{}, auth.Principal{}, err
	}

	to, err := selectAccountID(ctx, q, newOwner)
	if err != nil {
		return Dataset{}, auth.Principal{}, err
	}

	if to == uuid.Nil || to == from {
		return Dataset{}, auth.Principal{}, fault.New(fault.NotFound, fmt.Sprintf("There is no other user %q.", newOwner))
	}

	source, err := selectDataset(ctx, q, from, nameKey(at.Namespace), nameKey(at.Dataset), auth.Principal{Account: from})
	if err == nil && source == nil {
		err = fault.New(fault.NotFound, fmt.Sprintf("There is no dataset %s.", at))
	}

	if err != nil {
		return Dataset{}, auth.Principal{}, err
	}

	return *source, auth.Principal{Account: to, Username: newOwner}, nil
}

// receiveTx makes the hidden copy.
func (c Catalog) receiveTx(ctx context.Context, tx postgres.Tx, target auth.Principal, source Dataset, copied contents) (Dataset, error) {
	namespace, err := c.ensureNamespace(ctx, tx, target, source.Namespace, c.now())
	if err != nil {
		return Dataset{}, err
	}

	if taken, err := nameTaken(ctx, tx, target.Account, namespace.ID, nameKey(source.Name)); err != nil || taken {
		return Dataset{}, orTaken(err, "The new owner has a dataset of this name.")
	}

	moved := source
	moved.Account, moved.NamespaceID, moved.Namespace = target.Account, namespace.ID, namespace.Name
	moved.access = access{account: moved.Account, namespace: moved.NamespaceID, dataset: moved.ID}

	if err := insertCopy(ctx, tx, moved, copied, c.now()); err != nil {
		return Dataset{}, err
	}

	for _, g := range copied.grants {
		if g.subject.ID == target.Account.String() || g.subject == (auth.Subject{Kind: auth.SubjectName, ID: target.Username}) {
			continue // the owner needs none
		}

		if err := insertGrant(ctx, tx, moved.access, g, c.now()); err != nil {
			return Dataset{}, err
		}
	}

	return moved, nil
}

// BindName turns what was shared with a username into what is shared with the account that has it, one
// account's grants at a time. Before a name is released this must be done, or its next bearer would
// inherit them.
func (c Catalog) BindName(ctx context.Context, username string, account uuid.UUID) error {
	byName := auth.Subject{Kind: auth.SubjectName, ID: username}

	for {
		var found []entry

		err := c.DB.Do(ctx, func(q postgres.Querier) (err error) {
			found, err = selectInverse(ctx, q, byName, bindBatch)

			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}

		for _, e := range found {
			target := access{account: e.account, namespace: e.namespace, dataset: e.dataset}

			if err := c.DB.InTx(ctx, func(tx postgres.Tx) error {
				return bindGrant(ctx, tx, target, byName, auth.Subject{Kind: auth.SubjectAccount, ID: account.String()})
			}); err != nil {
				return err
			}
		}
	}
}

const bindBatch = 100

func (p Path) String() string { return p.Username + "/" + p.Namespace + "/" + p.Dataset }

// AccountID returns the account that has a username, or uuid.Nil.
func (c Catalog) AccountID(ctx context.Context, username string) (id uuid.UUID, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		id, err = selectAccountID(ctx, q, strings.ToLower(username))

		return err
	})

	return id, err
}
