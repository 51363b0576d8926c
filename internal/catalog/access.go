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

// Catalog stores namespaces, datasets and grants in PostgreSQL.
type Catalog struct {
	DB  *postgres.DB
	Now func() time.Time
	// DeleteGrace is the grace period: how long a deleted namespace or dataset can be restored.
	DeleteGrace time.Duration

	Exposure Exposure // exposure of datasets whose owner has set none; "" means the strictest

	// TrinoThreshold is the size of the data files, in bytes, beyond which Trino reads a dataset; 0 means that only the operator decides.
	TrinoThreshold int64

	// Refused is called when a limit of an account refuses something. nil means that nobody observes.
	Refused func(kind Kind)
}

// Path is the address of a namespace or, if Dataset is set, of a dataset. The Username "self" means the caller.
type Path struct {
	Username  string
	Namespace string
	Dataset   string
}

const pathParts = 3

// Named returns the path of a name as written in a statement: dataset, namespace/dataset or owner/namespace/dataset.
// Parts that the name omits are taken from p.
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
		p.Dataset = "" // too many parts: the path names nothing
	}

	return p
}

// The kinds of targets that grants, tokens and audit entries name.
const (
	kindNamespace = "namespace"
	kindDataset   = "dataset"
)

// Allow returns the dataset at a path if the caller has the needed role on it. Other packages check access to one
// dataset with it. It makes a constant number of index lookups.
//
// Faults: NotFound if the caller may not see the dataset, Forbidden if the caller may see it but has a lower role.
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

// access contains the facts that a decision about access needs.
type access struct {
	account   uuid.UUID
	namespace uuid.UUID
	dataset   uuid.UUID // uuid.Nil for a namespace as a whole
	granted   []string  // roles granted to the caller's subjects
}

// role returns the caller's role, or "" if the caller may not see the target.
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

// reachableBy reports whether a token may reach the target: a restricted token must name it or its namespace.
func (a access) reachableBy(token *auth.Grant) bool {
	if token == nil || !token.Restricted {
		return true
	}

	return slices.ContainsFunc(token.Targets, func(t auth.Target) bool {
		return t.Account == a.account && (t.ID == a.namespace || (a.dataset != uuid.Nil && t.ID == a.dataset))
	})
}

// decide returns a fault unless the caller has the needed role.
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

// owner returns the account of the username in a path. For an unknown username it returns an account that owns
// nothing, so that the response is the same as for something that the caller may not see.
func (c Catalog) owner(ctx context.Context, q postgres.Querier, who auth.Principal, username string) (uuid.UUID, error) {
	username = strings.ToLower(username)
	if username == auth.Self || username == who.Username {
		return who.Account, nil
	}

	return selectAccountID(ctx, q, username)
}

// nameKey returns the form in which names are compared.
func nameKey(name string) string { return strings.ToLower(name) }

func (c Catalog) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

func (n Namespace) audit() audit.Target {
	return audit.Target{Kind: kindNamespace, ID: n.ID.String(), Namespace: n.Name}
}

// Audit returns the dataset as the target of an audit entry.
func (d Dataset) Audit() audit.Target {
	return audit.Target{Kind: kindDataset, ID: d.ID.String(), Namespace: d.Namespace, Dataset: d.Name}
}

// AuditNamespace returns the dataset's namespace as the target of an audit entry.
func (d Dataset) AuditNamespace() audit.Target {
	return audit.Target{Kind: kindNamespace, ID: d.NamespaceID.String(), Namespace: d.Namespace}
}
