package catalog

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Namespace contains datasets of one account.
type Namespace struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Name      string
	Exposure  Exposure // "" if the owner has set none
	CreatedAt time.Time

	access access
}

// Role returns the caller's role on the namespace, or "" if only single datasets in it are shared.
func (n Namespace) Role(who auth.Principal) auth.Role { return n.access.role(who) }

// Exposure is what external models may see: the schema, also values, or whole rows.
type Exposure string

// The exposures, the strictest first.
const (
	SchemaExposed Exposure = "schema"
	ValuesExposed Exposure = "values"
	RowsExposed   Exposure = "rows"
)

// Less reports whether models may see less with e than with the other exposure.
func (e Exposure) Less(than Exposure) bool {
	order := []Exposure{SchemaExposed, ValuesExposed, RowsExposed}

	return slices.Index(order, e) < slices.Index(order, than)
}

// Exposed returns the exposure that applies if the owner has set the given one; "" means that the owner has set none.
func (c Catalog) Exposed(set Exposure) Exposure { return cmp.Or(set, c.Exposure, SchemaExposed) }

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckName returns a fault if a name is not valid.
func CheckName(field, name string) error {
	if !namePattern.MatchString(name) {
		return fault.Invalid(field, "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit")
	}

	return nil
}

// NewNamespace is a request to create a namespace of the caller.
type NewNamespace struct {
	Name     string
	Exposure Exposure // "" for the default
	Once     auth.Once
}

// CreateNamespace creates a namespace of the caller.
//
// Faults: ValidationFailed, Forbidden, Conflict if the name is taken.
func (c Catalog) CreateNamespace(ctx context.Context, who auth.Principal, want NewNamespace) (made Namespace, err error) {
	if err := mayCreate(who); err != nil {
		return Namespace{}, err
	}

	now := c.now()
	draft := c.draftNamespace(who, want.Name, want.Exposure, now)

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, draft.ID, now)
		if err != nil {
			return err
		}

		if !repeated {
			if err := c.createNamespaceTx(ctx, tx, draft, who.Audit(who.Account, now, "namespace.create", draft.audit())); err != nil {
				return err
			}
		}

		made, err = reloadNamespace(ctx, tx, who.Account, first)

		return err
	})

	return made, err
}

func (c Catalog) createNamespaceTx(ctx context.Context, tx postgres.Tx, draft Namespace, entry audit.Entry) error {
	if isNew, err := insertNamespace(ctx, tx, draft); err != nil || !isNew {
		return orTaken(err, "A namespace with this name already exists. Choose another name, or use the existing one.")
	}

	return audit.WriteTx(ctx, tx, entry)
}

func (c Catalog) draftNamespace(who auth.Principal, name string, exposure Exposure, now time.Time) Namespace {
	id := uuid.Must(uuid.NewV7())

	return Namespace{
		Account: who.Account, ID: id, Name: name, Exposure: exposure, CreatedAt: now,
		access: access{account: who.Account, namespace: id},
	}
}

// NamespaceChange is a change of a namespace. Empty fields do not change.
type NamespaceChange struct {
	Name     string
	Exposure Exposure
}

// UpdateNamespace renames a namespace or sets its exposure. Grants, tokens and conversations refer to the namespace by id
// and stay.
//
// Faults: NotFound, Forbidden, ValidationFailed if nothing changes, Conflict if the name is taken.
func (c Catalog) UpdateNamespace(ctx context.Context, who auth.Principal, at Path, change NamespaceChange) (changed Namespace, err error) {
	if change == (NamespaceChange{}) {
		return Namespace{}, fault.Invalid("body", "must have a name or an exposure")
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		if changed, err = c.allowNamespace(ctx, tx, who, auth.Owner, at); err != nil {
			return err
		}

		if isLive, err := updateNamespace(ctx, tx, changed, change); err != nil || !isLive {
			if constraint, taken := postgres.ViolatesUnique(err); taken && constraint == "namespaces_name" {
				return orTaken(nil, "A namespace with this name already exists. Choose another name, or use the existing one.")
			}

			return orAbsent(err)
		}

		entry := who.Audit(changed.Account, c.now(), "namespace.update", changed.audit())
		entry.Detail = DatasetChange{Name: change.Name, Exposure: change.Exposure}.describe()

		changed.Name, changed.Exposure = cmp.Or(change.Name, changed.Name), cmp.Or(change.Exposure, changed.Exposure)

		return audit.WriteTx(ctx, tx, entry)
	})

	return changed, err
}

// DeleteNamespace turns a namespace that has no datasets into a tombstone. Its name is free at once. The owner can restore it
// with its grants until the grace period ends.
//
// Faults: NotFound, Forbidden, Conflict if the namespace is not empty.
func (c Catalog) DeleteNamespace(ctx context.Context, who auth.Principal, at Path) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		namespace, err := c.allowNamespace(ctx, tx, who, auth.Owner, at)
		if err != nil {
			return err
		}

		// A transaction that adds a dataset to the namespace holds a share lock on the same row until it commits.
		if isLive, err := lockNamespace(ctx, tx, namespace); err != nil || !isLive {
			return orAbsent(err)
		}

		if isUsed, err := namespaceHasDatasets(ctx, tx, namespace); err != nil || isUsed {
			return orTaken(err, "The namespace is not empty. Delete its datasets first, each with DELETE /data/{username}/{namespace}/{datasetName}.")
		}

		if err := deleteNamespace(ctx, tx, namespace, c.now()); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(namespace.Account, c.now(), "namespace.delete", namespace.audit()))
	})
}

// reloadNamespace returns the namespace that an earlier request created, even if it has been changed or deleted
// since.
func reloadNamespace(ctx context.Context, tx postgres.Tx, account, id uuid.UUID) (Namespace, error) {
	found, err := selectNamespaceByID(ctx, tx, account, id)
	if err != nil || found == nil {
		return Namespace{}, orAbsent(err)
	}

	return *found, nil
}

// mayCreate checks whether the caller may create namespaces. This needs the role editor. A restricted token may not,
// because it could not reach the new namespace.
func mayCreate(who auth.Principal) error {
	switch {
	case who.Token != nil && who.Token.Restricted:
		return fault.New(fault.Forbidden, "A restricted token cannot create this.")
	case auth.Editor.Exceeds(who.Ceiling()):
		return fault.New(fault.Forbidden, "The token in use allows viewer at most.")
	default:
		return nil
	}
}

// orAbsent returns err, or NotFound if err is nil: the row to change was deleted in the meantime.
func orAbsent(err error) error {
	if err != nil {
		return err
	}

	return fault.Absent()
}

func orTaken(err error, message string) error {
	if err != nil {
		return err
	}

	return fault.New(fault.Conflict, message)
}
