package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Draft is a dataset that an ingestion names before the dataset exists. It has an id, so that files and ingestions
// can refer to it. Only its owner sees it. CreateDraftTx turns it into a dataset.
type Draft struct {
	Account     uuid.UUID
	ID          uuid.UUID
	NamespaceID uuid.UUID // uuid.Nil if the namespace does not exist either
	Namespace   string
	Name        string
	CreatedAt   time.Time

	entry audit.Entry // names the caller who first named the draft
}

// dataset returns the draft as a dataset without rows.
func (d Draft) dataset() Dataset {
	return Dataset{
		Account: d.Account, ID: d.ID, NamespaceID: d.NamespaceID, Namespace: d.Namespace, Name: d.Name, CreatedAt: d.CreatedAt,
		access: access{account: d.Account, dataset: d.ID},
	}
}

// AllowDraft is Allow for a dataset that may be a draft.
//
// Faults: those of Allow.
func (c Catalog) AllowDraft(ctx context.Context, q postgres.Querier, who auth.Principal, need auth.Role, at Path) (Dataset, error) {
	found, err := c.Allow(ctx, q, who, need, at)
	if !fault.Is(err, fault.NotFound) {
		return found, err
	}

	if own, checked := c.mayDraft(ctx, q, who, need, at); checked != nil || !own {
		return Dataset{}, orElse(checked, err)
	}

	draft, err := selectDraft(ctx, q, who.Account, nameKey(at.Namespace), nameKey(at.Dataset))
	if err != nil {
		return Dataset{}, err
	}

	if draft == nil {
		return c.Allow(ctx, q, who, need, at) // the draft may have become a dataset since the first check
	}

	return draft.dataset(), nil
}

// DraftTx is Allow, with the role editor, for a dataset that need not exist. If the path is one of the caller's own,
// it creates a draft.
//
// Faults: those of Allow, and ValidationFailed if a name is not valid.
func (c Catalog) DraftTx(ctx context.Context, tx postgres.Tx, who auth.Principal, at Path) (Dataset, error) {
	found, err := c.Allow(ctx, tx, who, auth.Editor, at)
	if !fault.Is(err, fault.NotFound) {
		return found, err
	}

	if own, checked := c.mayDraft(ctx, tx, who, auth.Editor, at); checked != nil || !own {
		return Dataset{}, orElse(checked, err)
	}

	want := NewDataset{Namespace: at.Namespace, Name: at.Dataset}
	if err := want.check(); err != nil {
		return Dataset{}, err
	}

	now := c.now()
	draft := Draft{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Namespace: at.Namespace, Name: at.Dataset, CreatedAt: now,
		entry: who.Audit(who.Account, now, "", audit.Target{}),
	}

	if draft.ID, err = upsertDraft(ctx, tx, draft); err != nil {
		return Dataset{}, err
	}

	// Another request may have turned its draft into a dataset since the first check. Then this draft is not needed.
	found, err = c.Allow(ctx, tx, who, auth.Editor, at)
	if fault.Is(err, fault.NotFound) {
		return draft.dataset(), nil
	}

	if err == nil {
		err = deleteDraft(ctx, tx, draft.Account, draft.ID)
	}

	return found, err
}

// mayDraft reports whether the caller may create a dataset at a path where the caller sees none.
func (c Catalog) mayDraft(ctx context.Context, q postgres.Querier, who auth.Principal, need auth.Role, at Path) (bool, error) {
	owner, err := c.owner(ctx, q, who, at.Username)
	if err != nil || owner != who.Account || need.Exceeds(who.Ceiling()) {
		return false, err
	}

	if who.Token == nil || !who.Token.Restricted {
		return true, nil
	}

	namespace, err := selectNamespace(ctx, q, owner, nameKey(at.Namespace), who)

	return err == nil && namespace != nil && namespace.access.reachableBy(who.Token), err
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}

	return otherwise
}

// FindDraft returns a draft by id, or nil if it does not exist.
func (c Catalog) FindDraft(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Draft, error) {
	return selectDraftByID(ctx, q, account, id)
}

// Dataset returns the dataset that the draft will become.
func (d Draft) Dataset() Dataset { return d.dataset() }

// CreateDraftTx creates the dataset of a draft, and its namespace if that does not exist. It returns the id of the namespace.
//
// Faults: Conflict if the name has been taken since.
func (c Catalog) CreateDraftTx(ctx context.Context, tx postgres.Tx, draft Draft) (uuid.UUID, error) {
	by := draft.entry
	by.Account, by.At = draft.Account, c.now()

	namespace, err := c.ensureNamespace(ctx, tx, auth.Principal{Account: draft.Account}, draft.Namespace, by)
	if err != nil {
		return uuid.Nil, err
	}

	made := Dataset{Account: draft.Account, ID: draft.ID, NamespaceID: namespace.ID, Namespace: namespace.Name, Name: draft.Name, CreatedAt: by.At}

	if isNew, err := insertDataset(ctx, tx, made); err != nil || !isNew {
		return uuid.Nil, orTaken(err, "Another request has created a dataset with this name. Load the files into that dataset, or choose another name.")
	}

	if err := deleteDraft(ctx, tx, draft.Account, draft.ID); err != nil {
		return uuid.Nil, err
	}

	if err := c.indexTx(ctx, tx, made.Account, made.ID); err != nil {
		return uuid.Nil, err
	}

	by.Action, by.Target = "dataset.create", made.Audit()

	return namespace.ID, audit.WriteTx(ctx, tx, by)
}

// StaleDrafts returns drafts that were last used before since.
func (c Catalog) StaleDrafts(ctx context.Context, q postgres.Querier, since time.Time, limit int) ([]Draft, error) {
	return selectStaleDrafts(ctx, q, since, limit)
}

// ForgetDraftTx removes a draft unless it was used after since. Its staged files are removed like those of a deleted
// dataset.
func (c Catalog) ForgetDraftTx(ctx context.Context, tx postgres.Tx, draft Draft, since time.Time) error {
	if isStale, err := deleteStaleDraft(ctx, tx, draft.Account, draft.ID, since); err != nil || !isStale {
		return err
	}

	return lake.RemoveTableTx(ctx, tx, draft.dataset().table(), c.now())
}
