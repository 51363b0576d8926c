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

// Namespace holds datasets of one account.
type Namespace struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Name      string
	Exposure  Exposure // "" if its owner has set none
	CreatedAt time.Time

	access access
}

// Role is what the caller may do with it, or "" if only single datasets in it are shared.
func (n Namespace) Role(who auth.Principal) auth.Role { return n.access.role(who) }

// Exposure is what external models may see: the schema, also values, or whole rows.
type Exposure string

// The exposures, from the least on.
const (
	SchemaExposed Exposure = "schema"
	ValuesExposed Exposure = "values"
	RowsExposed   Exposure = "rows"
)

// Less tells whether models may see less with it than with another.
func (e Exposure) Less(than Exposure) bool {
	order := []Exposure{SchemaExposed, ValuesExposed, RowsExposed}

	return slices.Index(order, e) < slices.Index(order, than)
}

// Exposed is what holds for an exposure that its owner set, or did not set.
func (c Catalog) Exposed(set Exposure) Exposure { return cmp.Or(set, c.Exposure, SchemaExposed) }

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckName returns a fault if nothing can have that name.
func CheckName(field, name string) error {
	if !namePattern.MatchString(name) {
		return fault.Invalid(field, "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit")
	}

	return nil
}

// NewNamespace is a request for a namespace of the caller's.
type NewNamespace struct {
	Name     string
	Exposure Exposure // "" for what holds by default
	Once     auth.Once
}

// CreateNamespace makes a namespace under the caller's name.
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
		return orTaken(err, "A namespace of this name exists.")
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

// UpdateNamespace sets what external models may see.
func (c Catalog) UpdateNamespace(ctx context.Context, who auth.Principal, at Path, exposure Exposure) (changed Namespace, err error) {
	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		if changed, err = c.allowNamespace(ctx, tx, who, auth.Owner, at); err != nil {
			return err
		}

		if isLive, err := updateNamespaceExposure(ctx, tx, changed, exposure); err != nil || !isLive {
			return orAbsent(err)
		}

		changed.Exposure = exposure

		entry := who.Audit(changed.Account, c.now(), "namespace.update", changed.audit())
		entry.Detail = "exposure " + string(exposure)

		return audit.WriteTx(ctx, tx, entry)
	})

	return changed, err
}

// DeleteNamespace removes a namespace that has no datasets, and all grants on it.
//
// Faults: NotFound, Forbidden, Conflict if it is not empty.
func (c Catalog) DeleteNamespace(ctx context.Context, who auth.Principal, at Path) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		namespace, err := c.allowNamespace(ctx, tx, who, auth.Owner, at)
		if err != nil {
			return err
		}

		// Whoever puts a dataset into it holds a share of this lock until it is there.
		if isLive, err := lockNamespace(ctx, tx, namespace); err != nil || !isLive {
			return orAbsent(err)
		}

		if isUsed, err := namespaceHasDatasets(ctx, tx, namespace); err != nil || isUsed {
			return orTaken(err, "The namespace is not empty. Delete its datasets first.")
		}

		if err := deleteGrantsOn(ctx, tx, namespace.access); err != nil {
			return err
		}

		if err := deleteNamespace(ctx, tx, namespace, c.now()); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(namespace.Account, c.now(), "namespace.delete", namespace.audit()))
	})
}

// reloadNamespace returns what an earlier request made, whatever became of it since.
func reloadNamespace(ctx context.Context, tx postgres.Tx, account, id uuid.UUID) (Namespace, error) {
	found, err := selectNamespaceByID(ctx, tx, account, id)
	if err != nil || found == nil {
		return Namespace{}, orAbsent(err)
	}

	return *found, nil
}

// mayCreate: making something is an editor's work, and what a restricted token makes it could not reach.
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

// orAbsent is for a row that was not there when it was to be changed: it went away meanwhile.
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
