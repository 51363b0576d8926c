package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Operations for operators: audited commands on the database, without an HTTP API.

// RestoreDataset restores the dataset that was last deleted at a path, with its definition, semantics and grants.
//
// Faults: NotFound if no dataset was deleted there or its grace period has ended; Conflict if the name has been taken
// again.
func (c Catalog) RestoreDataset(ctx context.Context, at Path) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		account, err := selectAccountID(ctx, tx, strings.ToLower(at.Username))
		if err != nil {
			return err
		}

		found, err := lockTombstone(ctx, tx, account, nameKey(at.Namespace), nameKey(at.Dataset), c.restorableSince())
		if err != nil {
			return err
		}

		if found == nil {
			return cannotRestore(at)
		}

		err = c.reviveTx(ctx, tx, found, c.byOperator(*found, "dataset.restore"), freeName)
		if fault.Is(err, fault.NotFound) { // its rows have been removed
			return cannotRestore(at)
		}

		return err
	})
}

func (c Catalog) byOperator(d Dataset, action string) audit.Entry {
	return audit.Entry{Account: d.Account, At: c.now(), Actor: audit.Operator, Action: action, Target: d.Audit()}
}

func cannotRestore(at Path) error {
	return fault.New(fault.NotFound, fmt.Sprintf("There is no deleted dataset at %s that can be restored.", at))
}

// TransferDataset transfers a dataset, with its definition, semantics and grants, to another user, into a namespace of
// the same name. The original becomes a tombstone, so that it can no longer be changed. Then a hidden copy is created, the
// original is removed, move transfers what other packages store about the dataset, and the copy becomes visible. If
// the transfer is interrupted, the dataset is a tombstone at the old or the new path, and RestoreDataset on that path
// restores it.
//
// move receives the table of the old owner and that of the new owner. Its transaction is the only one in the catalog
// that touches two accounts.
//
// Faults: NotFound, Conflict if the new owner has a dataset of that name or the old owner restores the tombstone.
func (c Catalog) TransferDataset(ctx context.Context, at Path, newOwner string, move func(tx postgres.Tx, from, to lake.Table) error) error {
	var (
		source, moved Dataset
		target        auth.Principal
		goods         contents
	)

	err := c.DB.Do(ctx, func(q postgres.Querier) (err error) {
		source, target, err = c.transferParties(ctx, q, at, newOwner)

		return err
	})
	if err != nil {
		return err
	}

	for _, step := range []func(tx postgres.Tx) error{
		func(tx postgres.Tx) (err error) {
			source, goods, err = c.withdrawTx(ctx, tx, source, newOwner)

			return err
		},
		func(tx postgres.Tx) (err error) {
			moved, err = c.receiveTx(ctx, tx, target, source, goods)

			return err
		},
		func(tx postgres.Tx) error {
			if removed, err := removeDataset(ctx, tx, source); err != nil || !removed {
				return orTaken(err, "The owner has restored the dataset since the transfer began. Try again.")
			}

			return move(tx, source.table(), moved.table())
		},
		func(tx postgres.Tx) error {
			return c.reviveTx(ctx, tx, &moved, c.byOperator(moved, "dataset.receive"), freeName)
		},
	} {
		if err := c.DB.InTx(ctx, step); err != nil {
			return err
		}
	}

	return nil
}

// withdrawTx turns the original into a tombstone. It returns the dataset as it was at that moment, and the contents
// to transfer.
func (c Catalog) withdrawTx(ctx context.Context, tx postgres.Tx, source Dataset, newOwner string) (Dataset, contents, error) {
	if isLive, err := deleteDataset(ctx, tx, source, c.now()); err != nil || !isLive {
		return Dataset{}, contents{}, orAbsent(err)
	}

	if err := lake.RemoveTableTx(ctx, tx, source.table(), c.now()); err != nil {
		return Dataset{}, contents{}, err
	}

	current, err := selectDatasetByID(ctx, tx, source.Account, source.ID, auth.Principal{Account: source.Account})
	if err != nil || current == nil {
		return Dataset{}, contents{}, orAbsent(err)
	}

	if err := audit.WriteTx(ctx, tx, audit.Entry{
		Account: source.Account, At: c.now(), Actor: audit.Operator, Action: "dataset.transfer", Target: current.Audit(), Detail: newOwner,
	}); err != nil {
		return Dataset{}, contents{}, err
	}

	goods, err := selectContents(ctx, tx, *current)

	return *current, goods, err
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

	if attached, err := lake.IsAttached(ctx, q, source.table()); err != nil || attached {
		if err == nil {
			err = fault.New(fault.Conflict, fmt.Sprintf("The dataset %s is attached: the new owner attaches the table with a connection and a source of their own.", at))
		}

		return Dataset{}, auth.Principal{}, err
	}

	return *source, auth.Principal{Account: to, Username: newOwner}, c.checkRoom(ctx, q, to, *source)
}

// checkRoom refuses a transfer to a user who has a dataset of that name, before anything is changed.
func (c Catalog) checkRoom(ctx context.Context, q postgres.Querier, to uuid.UUID, source Dataset) error {
	there, err := selectDataset(ctx, q, to, nameKey(source.Namespace), nameKey(source.Name), auth.Principal{Account: to})
	if err != nil || there != nil {
		return orTaken(err, "The new owner already has a dataset with this name.")
	}

	return nil
}

// receiveTx creates the hidden copy.
func (c Catalog) receiveTx(ctx context.Context, tx postgres.Tx, target auth.Principal, source Dataset, goods contents) (Dataset, error) {
	by := audit.Entry{Account: target.Account, At: c.now(), Actor: audit.Operator}

	namespace, err := c.ensureNamespace(ctx, tx, target, source.Namespace, by)
	if err != nil {
		return Dataset{}, err
	}

	moved := source
	moved.Account, moved.NamespaceID, moved.Namespace = target.Account, namespace.ID, namespace.Name
	moved.access = access{account: moved.Account, namespace: moved.NamespaceID, dataset: moved.ID}

	if err := insertCopy(ctx, tx, moved, goods, c.now()); err != nil {
		return Dataset{}, err
	}

	for _, g := range goods.grants {
		if g.subject == (auth.Subject{Kind: auth.SubjectAccount, ID: target.Account.String()}) || g.subject == (auth.Subject{Kind: auth.SubjectName, ID: target.Username}) {
			continue // the owner needs no grant
		}

		if err := insertGrant(ctx, tx, moved.access, g, c.now()); err != nil {
			return Dataset{}, err
		}
	}

	return moved, nil
}

// BindName turns grants to a username into grants to the account that has the username, in one transaction for each
// grant. This must be done before a username is released, or the next account with that username would inherit the
// grants.
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

// AccountID returns the account that has a username.
//
// Faults: NotFound.
func (c Catalog) AccountID(ctx context.Context, username string) (id uuid.UUID, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		id, err = accountOf(ctx, q, username)

		return err
	})

	return id, err
}

func accountOf(ctx context.Context, q postgres.Querier, username string) (uuid.UUID, error) {
	account, err := selectAccountID(ctx, q, strings.ToLower(username))
	if err == nil && account == uuid.Nil {
		err = fault.New(fault.NotFound, fmt.Sprintf("There is no user %q.", username))
	}

	return account, err
}
