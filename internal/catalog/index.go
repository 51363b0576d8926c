package catalog

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// indexTx rewrites the search document of a dataset in the transaction that changed the dataset. It locks the
// document before it reads the dataset, so that of two concurrent changes the later one reads what the earlier one
// wrote.
func (c Catalog) indexTx(ctx context.Context, tx postgres.Tx, account, dataset uuid.UUID) error {
	found, err := lockSearched(ctx, tx, account, dataset)
	if err != nil || len(found) == 0 {
		return err
	}

	return indexAll(ctx, tx, found)
}

// SetValuesTx stores values by which a dataset can be found, up to a limit; nil means none.
func (c Catalog) SetValuesTx(ctx context.Context, tx postgres.Tx, account, dataset uuid.UUID, values []string) error {
	if isNew, err := updateExamples(ctx, tx, account, dataset, bounded(values)); err != nil || !isNew {
		return err
	}

	return c.indexTx(ctx, tx, account, dataset)
}

// indexBatch is the number of documents that one transaction writes.
const indexBatch = 100

// indexStale writes one batch of stale documents and returns their number.
func (c Catalog) indexStale(ctx context.Context) (made int, err error) {
	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockStale(ctx, tx, indexBatch)
		if err != nil || len(found) == 0 {
			return err
		}

		made = len(found)

		return indexAll(ctx, tx, found)
	})

	return made, err
}

// indexShares adds one batch of grants to the search documents. It returns the number of grants in the batch.
func (c Catalog) indexShares(ctx context.Context) (made int, err error) {
	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		made, err = indexGrants(ctx, tx, indexBatch)

		return err
	})

	return made, err
}

// indexAll writes the documents of datasets of one account. The caller has locked their rows. A deleted dataset gets
// an empty document.
func indexAll(ctx context.Context, tx postgres.Tx, list []searched) error {
	live, err := selectSearched(ctx, tx, list)
	if err != nil {
		return err
	}

	ids, documents := make([]uuid.UUID, len(list)), make([]string, len(list))

	for i, s := range list {
		ids[i] = s.dataset

		if current, ok := live[s.dataset]; ok {
			current.account, current.values = s.account, s.values
			documents[i] = current.document()
		}
	}

	return updateSearched(ctx, tx, list[0].account, ids, documents)
}
