package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// DatasetID returns the id of a dataset that is not deleted.
//
// Faults: NotFound.
func (c Catalog) DatasetID(ctx context.Context, at Path) (id uuid.UUID, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		account, err := selectAccountID(ctx, q, strings.ToLower(at.Username))
		if err != nil {
			return err
		}

		found, err := selectDataset(ctx, q, account, nameKey(at.Namespace), nameKey(at.Dataset), auth.Principal{Account: account})
		if err == nil && found == nil {
			return fault.New(fault.NotFound, fmt.Sprintf("There is no dataset %s. Name a deleted dataset by its id: OWNER/ID.", at))
		}

		if found != nil {
			id = found.ID
		}

		return err
	})

	return id, err
}

// HoldTx returns a dataset that is not deleted, and locks it against changes until the transaction ends.
//
// Faults: NotFound.
func (c Catalog) HoldTx(ctx context.Context, tx postgres.Tx, account, id uuid.UUID) (Dataset, error) {
	found, deletedAt, err := lockDatasetByID(ctx, tx, account, id)
	if err != nil || found == nil || deletedAt != nil {
		return Dataset{}, orAbsent(err)
	}

	return *found, nil
}

// EraseTx hides a dataset that is about to be erased, whether it is deleted or not.
//
// Faults: NotFound.
func (c Catalog) EraseTx(ctx context.Context, tx postgres.Tx, account, id uuid.UUID) (Dataset, error) {
	found, deletedAt, err := lockDatasetByID(ctx, tx, account, id)
	if err != nil || found == nil {
		return Dataset{}, orAbsent(err)
	}

	if deletedAt == nil {
		_, err = deleteDataset(ctx, tx, *found, c.now())
	}

	return *found, err
}
