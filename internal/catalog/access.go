package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Catalog keeps what exists in PostgreSQL.
type Catalog struct {
	DB  *postgres.DB
	Now func() time.Time

	Exposure Exposure // of datasets whose owner has set none; "" is the least
}

// Path is how people name a namespace, or with a Dataset a dataset. "self" as Username is the caller.
type Path struct {
	Username  string
	Namespace string
	Dataset   string
}

const pathParts = 3

// Named reads a name as statements have it: dataset, namespace/dataset or owner/namespace/dataset. What is left out is
// that of the path.
func (p Path) Named(name string) Path {
	parts := strings.Split(name, "/")
	p.Dataset = parts[len(parts)-1]

	if len(parts) > 1 {
		p.Namespace = parts[len(parts)-2]
	}

	if len(parts) == pathParts {
		p.Username = parts[0]
	}

	if len(parts) > pathParts {
		p.Dataset = "" // names nothing
	}

	return p
}

// The kinds of target that grants, tokens and audit entries name.
const (
	kindNamespace = "namespace"
	kindDataset   = "dataset"
)

// Allow finds the dataset at a path and decides whether the caller may use it as the role needs. It is
// how every other package asks: a constant number of look-ups, by index.
//
// Faults: NotFound if the caller may not see it, Forbidden if the caller may see it and not more.
func (c Catalog) Allow(ctx context.Context, q postgres.Querier, who auth.Principal, need auth.Role, at Path) (Dataset, error) {
	owner, err := c.owner(ctx, q, who, at.Username)
	if err != nil {
		return Dataset{}, err
	}

	found, err := selectDataset(ctx, q, owner, nameKey(at.Namespace), nameKey(at.Dataset), who)
	if err != nil {
		return Dataset{}, err
	}

	if found == nil {
		return Dataset{}, fault.Absent()
	}

	return *found, decide(who, need, found.access)
}

// allowNamespace is Allow for a namespace as a whole.
func (c Catalog) allowNamespace(ctx context.Context, q postgres.Querier, who auth.Principal, need auth.Role, at Path) (Namespace, error) {
	owner, err := c.owner(ctx, q, who, at.Username)
	if err != nil {
		return Namespace{}, err
	}

	found, err := selectNamespace(ctx, q, owner, nameKey(at.Namespace), who)
	if err != nil {
		return Namespace{}, err
	}

	if found == nil {
		return Namespace{}, fault.Absent()
	}

	return *found, decide(who, need, found.access)
}

// access is what a decision rests on.
type access struct {
	account   uuid.UUID
	namespace uuid.UUID
	dataset   uuid.UUID // uuid.Nil for a namespace as a whole
	granted   []string  // roles that grants give to the caller's subjects
}

// role is what the caller may do with it, or "" for nothing at all.
func (a access) role(who auth.Principal) auth.Role {
	if !a.reachableBy(who.Token) {
		return ""
	}

	var highest auth.Role

	switch {
	case a.account == who.Account:
		highest = auth.Owner
	case slices.Contains(a.granted, string(auth.Editor)):
		highest = auth.Editor
	case slices.Contains(a.granted, string(auth.Viewer)):
		highest = auth.Viewer
	default:
		return ""
	}

	if highest.Exceeds(who.Ceiling()) {
		return who.Ceiling()
	}

	return highest
}

// reachableBy tells whether a restricted token names it, or the namespace that it is in.
func (a access) reachableBy(token *auth.Grant) bool {
	if token == nil || !token.Restricted {
		return true
	}

	return slices.ContainsFunc(token.Targets, func(t auth.Target) bool {
		return t.Account == a.account && (t.ID == a.namespace || (a.dataset != uuid.Nil && t.ID == a.dataset))
	})
}

// decide is the one decision about access.
func decide(who auth.Principal, need auth.Role, a access) error {
	switch role := a.role(who); {
	case role == "":
		return fault.Absent()
	case need.Exceeds(role):
		return fault.New(fault.Forbidden, "This needs the role "+string(need)+"; you have "+string(role)+".")
	default:
		return nil
	}
}

// owner returns the account that a path begins with. An unknown name is a name of nobody: it leads to an
// account that has nothing, so that the answer is the same as for what the caller may not see.
func (c Catalog) owner(ctx context.Context, q postgres.Querier, who auth.Principal, username string) (uuid.UUID, error) {
	username = strings.ToLower(username)
	if username == auth.Self || username == who.Username {
		return who.Account, nil
	}

	return selectAccountID(ctx, q, username)
}

// nameKey is how names are compared.
func nameKey(name string) string { return strings.ToLower(name) }

func (c Catalog) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

func (n Namespace) audit() audit.Target {
	return audit.Target{Kind: kindNamespace, ID: n.ID.String(), Namespace: n.Name}
}

// Audit names the dataset in an audit entry.
func (d Dataset) Audit() audit.Target {
	return audit.Target{Kind: kindDataset, ID: d.ID.String(), Namespace: d.Namespace, Dataset: d.Name}
}

// AuditNamespace names the dataset's namespace in an audit entry.
func (d Dataset) AuditNamespace() audit.Target {
	return audit.Target{Kind: kindNamespace, ID: d.NamespaceID.String(), Namespace: d.Namespace}
}
