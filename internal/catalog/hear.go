package catalog

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// SeenNamespaces returns those of the given namespaces of an account that the caller may see as a whole.
func (c Catalog) SeenNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal, account uuid.UUID, ids []uuid.UUID) ([]Namespace, error) {
	found, err := selectNamespacesByID(ctx, q, account, who, ids)

	return slices.DeleteFunc(found, func(n Namespace) bool { return n.access.role(who) == "" }), err
}

// Sharers returns the accounts that share something with the caller, at most limit.
func (c Catalog) Sharers(ctx context.Context, q postgres.Querier, who auth.Principal, limit int) ([]uuid.UUID, error) {
	return selectSharers(ctx, q, who, limit)
}
