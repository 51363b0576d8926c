package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Dataset is a typed table of one account.
type Dataset struct {
	Account         uuid.UUID
	ID              uuid.UUID
	NamespaceID     uuid.UUID
	Namespace       string
	Name            string
	Exposure        Exposure // its own, else that of its namespace; "" if the owner has set neither
	Epoch           int64
	DataDescription string
	Columns         []Column
	Key             Key
	Engine          Engine
	RowCount        int64
	Bytes           int64     // size of the data files of the snapshot; only in lists and in descriptions
	SnapshotID      uuid.UUID // snapshot that Columns and RowCount describe; uuid.Nil before the first rows
	CreatedAt       time.Time
	UpdatedAt       time.Time

	access access
}

// Column is one column of a dataset.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

func (d Dataset) table() lake.Table { return lake.Table{Account: d.Account, Dataset: d.ID} }

// Role returns the caller's role on the dataset.
func (d Dataset) Role(who auth.Principal) auth.Role { return d.access.role(who) }

// Description is a dataset with its definition.
type Description struct {
	Dataset

	Owner       string
	Definition  Definition
	RefreshedAt time.Time // see Refreshed; zero if there was none
}

// NewDataset is a request to create a dataset of the caller.
type NewDataset struct {
	Namespace  string
	Name       string
	Definition Change
	Once       auth.Once
}

// CreateDataset creates a dataset, and its namespace if that does not exist.
//
// Faults: ValidationFailed if a name is not valid, Forbidden, Conflict if the name is taken.
func (c Catalog) CreateDataset(ctx context.Context, who auth.Principal, want NewDataset) (made Description, err error) {
	if auth.Editor.Exceeds(who.Ceiling()) {
		return Description{}, fault.New(fault.Forbidden, "The token in use allows viewer at most.")
	}

	if err := want.check(); err != nil {
		return Description{}, err
	}

	now, id := c.now(), uuid.Must(uuid.NewV7())

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		// Ingestions that named the dataset before it existed use the id of the draft, so the new dataset takes that
		// id.
		if draft, err := selectDraft(ctx, tx, who.Account, nameKey(want.Namespace), nameKey(want.Name)); err != nil {
			return err
		} else if draft != nil {
			id = draft.ID
		}

		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, id, now)
		if err != nil {
			return err
		}

		if !repeated {
			if err := c.createDatasetTx(ctx, tx, who, id, want, now); err != nil {
				return err
			}
		}

		made, err = c.describe(ctx, tx, who, first)

		return err
	})

	return made, err
}

func (want NewDataset) check() error {
	if err := CheckName("namespace", want.Namespace); err != nil {
		return err
	}

	return CheckName("datasetName", want.Name)
}

func (c Catalog) createDatasetTx(ctx context.Context, tx postgres.Tx, who auth.Principal, id uuid.UUID, want NewDataset, now time.Time) error {
	namespace, err := c.ensureNamespace(ctx, tx, who, want.Namespace, who.Audit(who.Account, now, "", audit.Target{}))
	if err != nil {
		return err
	}

	made := Dataset{
		Account: who.Account, ID: id, NamespaceID: namespace.ID, Namespace: namespace.Name, Name: want.Name, CreatedAt: now,
		access: access{account: who.Account, namespace: namespace.ID, dataset: id},
	}

	if !made.access.reachableBy(who.Token) {
		return fault.New(fault.Forbidden, "A restricted token cannot create this.")
	}

	if isNew, err := insertDataset(ctx, tx, made); err != nil || !isNew {
		return orTaken(err, "A dataset with this name already exists. Choose another name, or add rows to the existing one.")
	}

	if err := deleteDraft(ctx, tx, made.Account, made.ID); err != nil {
		return err
	}

	if want.Definition.given() {
		if err := c.saveDefinition(ctx, tx, who, made, 0, want.Definition.apply(Definition{}), now); err != nil {
			return err
		}
	}

	if err := c.indexTx(ctx, tx, made.Account, made.ID); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, now, "dataset.create", made.Audit()))
}

// ensureNamespace returns the namespace of that name in the account of who, and creates it if it does not exist. The
// namespace is locked so that it cannot be deleted before the transaction ends. The audit entry by says who creates
// it.
func (c Catalog) ensureNamespace(ctx context.Context, tx postgres.Tx, who auth.Principal, name string, by audit.Entry) (Namespace, error) {
	for {
		found, err := holdNamespace(ctx, tx, who.Account, nameKey(name))
		if err != nil {
			return Namespace{}, err
		}

		if found != nil {
			return *found, nil
		}

		if err := mayCreate(who); err != nil {
			return Namespace{}, err
		}

		made := c.draftNamespace(who, name, "", by.At)
		if isNew, err := insertNamespace(ctx, tx, made); err != nil || isNew {
			if err != nil {
				return Namespace{}, err
			}

			by.Action, by.Target = "namespace.create", made.audit()

			return made, audit.WriteTx(ctx, tx, by)
		}
	}
}

// Describe returns a dataset with its definition.
func (c Catalog) Describe(ctx context.Context, who auth.Principal, at Path) (described Description, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := c.Allow(ctx, q, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		described, err = c.withDefinition(ctx, q, found)

		return err
	})

	return described, err
}

// describe returns a dataset of the caller by id, even if it has been renamed or deleted since.
func (c Catalog) describe(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Description, error) {
	found, err := selectDatasetByID(ctx, q, who.Account, id, who)
	if err != nil || found == nil {
		return Description{}, orAbsent(err)
	}

	return c.withDefinition(ctx, q, *found)
}

func (c Catalog) withDefinition(ctx context.Context, q postgres.Querier, d Dataset) (Description, error) {
	definition, err := selectDefinition(ctx, q, d)
	if err != nil || definition == nil {
		return Description{}, orAbsent(err)
	}

	described := []Dataset{d}
	if err := c.measure(ctx, q, described); err != nil {
		return Description{}, err
	}

	owners, err := selectUsernames(ctx, q, []uuid.UUID{d.Account})
	if err != nil {
		return Description{}, err
	}

	refreshed, err := selectRefreshed(ctx, q, d)

	return Description{Dataset: described[0], Owner: owners[d.Account], Definition: *definition, RefreshedAt: refreshed}, err
}

// Refreshed records that a source had nothing for the dataset at this moment that the dataset did not get.
func (c Catalog) Refreshed(ctx context.Context, d Dataset, at time.Time) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error { return updateRefreshed(ctx, tx, d, at) })
}

// DatasetChange is what an owner can change. A field with "" is not changed.
type DatasetChange struct {
	Name      string
	Exposure  Exposure
	Namespace string // of the same account
}

// UpdateDataset renames a dataset or sets its exposure. After a rename the old path is free.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict if the name is taken.
func (c Catalog) UpdateDataset(ctx context.Context, who auth.Principal, at Path, change DatasetChange) (changed Description, err error) {
	if change == (DatasetChange{}) {
		return Description{}, fault.Invalid("body", "must have a name, a namespace or an exposure")
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := c.Allow(ctx, tx, who, auth.Owner, at)
		if err != nil {
			return err
		}

		entry := who.Audit(found.Account, c.now(), "dataset.update", found.Audit())
		entry.Detail = change.describe()

		if err := c.moveTx(ctx, tx, who, &found, change.Namespace); err != nil {
			return err
		}

		if isLive, err := updateDataset(ctx, tx, found, change, c.now()); err != nil || !isLive {
			if constraint, taken := postgres.ViolatesUnique(err); taken && constraint == "datasets_name" {
				return orTaken(nil, "A dataset with this name already exists. Choose another name, or add rows to the existing one.")
			}

			return orAbsent(err)
		}

		if change.Name != "" || change.Namespace != "" {
			if err := c.indexTx(ctx, tx, found.Account, found.ID); err != nil {
				return err
			}
		}

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		changed, err = c.describe(ctx, tx, who, found.ID)

		return err
	})

	return changed, err
}

// moveTx locks a dataset and prepares its move to another namespace of its account; "" means that it stays. Grants on the
// dataset move with it. Grants on its former namespace no longer cover it, and those on the new one do.
func (c Catalog) moveTx(ctx context.Context, tx postgres.Tx, who auth.Principal, d *Dataset, namespace string) error {
	if isLive, err := lockDataset(ctx, tx, d); err != nil || !isLive {
		return orAbsent(err)
	}

	if namespace == "" {
		return nil
	}

	home, err := holdNamespace(ctx, tx, d.Account, nameKey(namespace))
	if err != nil {
		return err
	}

	if home == nil {
		return c.noNamespace(ctx, tx, who, Path{Username: auth.Self, Namespace: namespace}, " Choose another, or create it first with POST /schema/self/namespaces or quern namespace create.")
	}

	if home.ID != d.NamespaceID {
		err = moveInverse(ctx, tx, *d, home.ID)
	}

	d.NamespaceID = home.ID

	return err
}

func (change DatasetChange) describe() string {
	var parts []string
	if change.Name != "" {
		parts = append(parts, "name "+change.Name)
	}

	if change.Namespace != "" {
		parts = append(parts, "namespace "+change.Namespace)
	}

	if change.Exposure != "" {
		parts = append(parts, "exposure "+string(change.Exposure))
	}

	return strings.Join(parts, ", ")
}

// DeleteDataset turns a dataset into a tombstone. Its name is free at once. The owner and the operator can restore the
// dataset until the grace period ends.
func (c Catalog) DeleteDataset(ctx context.Context, who auth.Principal, at Path) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := c.Allow(ctx, tx, who, auth.Owner, at)
		if err != nil {
			return err
		}

		if isLive, err := deleteDataset(ctx, tx, found, c.now()); err != nil || !isLive {
			return orAbsent(err)
		}

		if err := lake.RemoveTableTx(ctx, tx, found.table(), c.now()); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(found.Account, c.now(), "dataset.delete", found.Audit()))
	})
}

// ClearTx records that the rows of a dataset are removed in the same transaction. It raises the epoch and keeps the
// name, the definition and the grants. The snapshot is the one without rows, or uuid.Nil if the dataset never had rows.
//
// Faults: NotFound, Forbidden.
func (c Catalog) ClearTx(ctx context.Context, tx postgres.Tx, who auth.Principal, at Path, snapshot uuid.UUID) (Description, error) {
	found, err := c.Allow(ctx, tx, who, auth.Editor, at)
	if err != nil {
		return Description{}, err
	}

	if isLive, err := clearDataset(ctx, tx, found, snapshot, c.now()); err != nil || !isLive {
		return Description{}, orAbsent(err)
	}

	if err := c.SetValuesTx(ctx, tx, found.Account, found.ID, nil); err != nil {
		return Description{}, err
	}

	if err := audit.WriteTx(ctx, tx, who.Audit(found.Account, c.now(), "dataset.clear", found.Audit())); err != nil {
		return Description{}, err
	}

	found.RowCount, found.Epoch, found.UpdatedAt, found.SnapshotID = 0, found.Epoch+1, c.now(), snapshot

	return c.withDefinition(ctx, tx, found)
}

// Content is the columns, the size and the snapshot of a dataset.
type Content struct {
	Columns            []Column
	Rows               int64
	Bytes, BytesBefore int64 // of its data files, now and in the snapshot before
	Snapshot           uuid.UUID
	IsAttached         bool // its data files are in another store
}

// SetContentTx records a new snapshot of a dataset. It returns false if the dataset was cleared, deleted or restored
// after d was read, that is, if its epoch is no longer that of d, or if its key has other columns than that of d.
func (c Catalog) SetContentTx(ctx context.Context, tx postgres.Tx, d Dataset, content Content) (bool, error) {
	if fits, err := updateContent(ctx, tx, d, content, c.now()); err != nil || !fits {
		return false, err
	}

	if err := c.crossTx(ctx, tx, d, content); err != nil {
		return false, err
	}

	if slices.Equal(d.Columns, content.Columns) {
		return true, nil
	}

	if len(d.Columns) > 0 { // the first columns of a dataset are no change
		told := d.Event(event.ColumnsChanged, c.now())
		told.Data.Columns = changedColumns(d.Columns, content.Columns)

		if err := event.WriteTx(ctx, tx, told); err != nil {
			return false, err
		}
	}

	return true, c.indexTx(ctx, tx, d.Account, d.ID)
}

// Event returns an event about the dataset.
func (d Dataset) Event(what event.Type, now time.Time) event.Event {
	return event.Event{
		Account: d.Account, Type: what, At: now, Subject: event.Subject{Kind: event.KindDataset, Account: d.Account, ID: d.ID, Namespace: d.NamespaceID},
		Data: event.Data{Namespace: d.Namespace, Dataset: d.Name, DatasetID: &d.ID},
	}
}

func changedColumns(before, after []Column) *event.Columns {
	changed := &event.Columns{Added: []string{}, Removed: []string{}, Retyped: []string{}}

	for _, c := range before {
		at := slices.IndexFunc(after, func(other Column) bool { return other.Name == c.Name })

		switch {
		case at < 0:
			changed.Removed = append(changed.Removed, c.Name)
		case after[at] != c:
			changed.Retyped = append(changed.Retyped, c.Name)
		}
	}

	for _, c := range after {
		if !slices.ContainsFunc(before, func(other Column) bool { return other.Name == c.Name }) {
			changed.Added = append(changed.Added, c.Name)
		}
	}

	return changed
}

// SetSnapshotTx records a snapshot with the same rows as the snapshot before it.
func (c Catalog) SetSnapshotTx(ctx context.Context, tx postgres.Tx, account, id, snapshot uuid.UUID) error {
	return updateSnapshot(ctx, tx, account, id, snapshot)
}

// RestoreTx sets the content of a dataset to that of an earlier snapshot and raises the epoch. The caller restores
// the table in the same transaction.
//
// Faults: NotFound, Forbidden.
func (c Catalog) RestoreTx(ctx context.Context, tx postgres.Tx, who auth.Principal, at Path, content Content) error {
	found, err := c.Allow(ctx, tx, who, auth.Owner, at)
	if err != nil {
		return err
	}

	if isLive, err := clearDataset(ctx, tx, found, content.Snapshot, c.now()); err != nil || !isLive {
		return orAbsent(err)
	}

	found.Epoch++

	if isLive, err := c.SetContentTx(ctx, tx, found, content); err != nil || !isLive {
		return orAbsent(err)
	}

	if err := c.SetValuesTx(ctx, tx, found.Account, found.ID, nil); err != nil {
		return err
	}

	entry := who.Audit(found.Account, c.now(), "snapshot.restore", found.Audit())
	entry.Detail = content.Snapshot.String()

	return audit.WriteTx(ctx, tx, entry)
}

// Live returns a dataset by id, or nil if it was deleted. It does not check access: it is for work that was permitted
// when it was accepted.
func (c Catalog) Live(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Dataset, error) {
	found, err := selectDatasetsByID(ctx, q, account, auth.Principal{Account: account}, []uuid.UUID{id})

	return first(found, err)
}
