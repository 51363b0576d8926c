package catalog

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// indexTx makes what is searched of a dataset anew, in the transaction that changed it. The document is locked before
// the dataset is read: of two that change it at once the later one reads what the other wrote.
func (c Catalog) indexTx(ctx context.Context, tx postgres.Tx, account, dataset uuid.UUID) error {
	found, err := lockSearched(ctx, tx, account, dataset)
	if err != nil || len(found) == 0 {
		return err
	}

	return indexAll(ctx, tx, found)
}

// SetValuesTx keeps values of a dataset to find it by; nil for none. Of many it keeps the first ones.
func (c Catalog) SetValuesTx(ctx context.Context, tx postgres.Tx, account, dataset uuid.UUID, values []string) error {
	if isNew, err := updateExamples(ctx, tx, account, dataset, bounded(values)); err != nil || !isNew {
		return err
	}

	return c.indexTx(ctx, tx, account, dataset)
}

// indexBatch is how many documents a transaction makes.
const indexBatch = 100

// indexStale makes the documents that are missing, and says how many there were.
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

// indexAll makes the documents of datasets of one account, whose rows are locked. One that is gone has an empty one.
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
