package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

// Semantics is what people said about the meaning of a dataset. Its joins and measures name other datasets by their
// TargetKey. Revision 0 is the state before anybody said something.
type Semantics struct {
	Revision int64
	Saved    meaning.Saved
}

// TargetKey returns the name of a dataset in stored semantics. It does not change when the dataset is renamed or moved.
func TargetKey(d Dataset) string { return d.Account.String() + "/" + d.ID.String() }

// JoinTargets returns the datasets that stored semantics name and that the caller may see, by their TargetKey.
func (c Catalog) JoinTargets(ctx context.Context, q postgres.Querier, who auth.Principal, keys []string) (map[string]Item, error) {
	ids := map[uuid.UUID][]uuid.UUID{} // by account

	for _, key := range keys {
		var account, id uuid.UUID
		if account.UnmarshalText([]byte(key[:min(len(key), uuidLength)])) == nil && id.UnmarshalText([]byte(key[min(len(key), uuidLength+1):])) == nil {
			ids[account] = append(ids[account], id)
		}
	}

	found := map[string]Item{}

	for account, list := range ids {
		seen, err := c.Seen(ctx, q, who, account, list)
		if err != nil {
			return nil, err
		}

		for _, item := range seen {
			found[TargetKey(item.Dataset)] = item
		}
	}

	return found, nil
}

const uuidLength = 36

// Semantics returns the semantics of datasets of an account. It does not check access; callers must have done so.
func (c Catalog) Semantics(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Semantics, error) {
	return selectSemantics(ctx, q, account, ids)
}

// PutSemantics saves a new revision of the semantics of the dataset with the given id, which must still be at the path.
// change returns the new content from the current one. If expected is not nil, the current revision must be one of the
// expected revisions.
//
// Faults: NotFound, Forbidden, PreconditionFailed if the current revision is not expected.
func (c Catalog) PutSemantics(ctx context.Context, who auth.Principal, at Path, id uuid.UUID, expected []int64, change func(meaning.Saved) meaning.Saved) (saved Semantics, err error) {
	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := c.Allow(ctx, tx, who, auth.Editor, at)
		if err != nil {
			return err
		}

		if isLive, err := lockDataset(ctx, tx, &found); err != nil || !isLive || found.ID != id {
			return orAbsent(err)
		}

		all, err := selectSemantics(ctx, tx, found.Account, []uuid.UUID{id})
		if err != nil {
			return err
		}

		current := all[id]
		if expected != nil && !slices.Contains(expected, current.Revision) {
			return fault.New(fault.PreconditionFailed, "The semantics have changed. Read them again, then repeat the change.")
		}

		saved = Semantics{Revision: current.Revision + 1, Saved: change(current.Saved)}

		if err := insertSemantics(ctx, tx, who, found, saved, c.now()); err != nil {
			return err
		}

		entry := who.Audit(found.Account, c.now(), "semantics.put", found.Audit())
		entry.Detail = fmt.Sprintf("revision %d", saved.Revision)

		return audit.WriteTx(ctx, tx, entry)
	})

	return saved, err
}
