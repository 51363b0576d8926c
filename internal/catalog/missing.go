package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

const (
	maxSuggested = 200 // names that are compared with a missing one
	maxShown     = 10  // names that a message lists
)

// Lookup is Visible for a namespace that a body names: its fault says which one, because the address of the request does
// not.
func (c Catalog) Lookup(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) (Namespace, error) {
	namespace, err := c.Visible(ctx, q, who, at)
	if fault.Is(err, fault.NotFound) {
		err = c.noNamespace(ctx, q, who, at, "")
	}

	return namespace, err
}

// noNamespace returns the fault for a namespace that does not exist or that the caller may not see; the message is the
// same for both. It suggests a similar name, or lists what the caller may see, and ends with the advice.
func (c Catalog) noNamespace(ctx context.Context, q postgres.Querier, who auth.Principal, at Path, advice string) error {
	names, err := c.NamespaceNames(ctx, q, who, at.Username, maxSuggested)
	if err != nil {
		return err
	}

	return missing(fmt.Sprintf("There is no namespace %q of %s that you can see.", at.Namespace, who.NameOf(at.Username)), at.Namespace, names, advice)
}

// NamespaceNames returns the names of the first namespaces of a user that the caller may see; none if the caller may see
// nothing of the user, whether or not the user exists.
func (c Catalog) NamespaceNames(ctx context.Context, q postgres.Querier, who auth.Principal, username string, limit int) ([]string, error) {
	owner, err := c.owner(ctx, q, who, username)
	if err != nil {
		return nil, err
	}

	found, err := c.namespaces(ctx, q, who, owner, uuid.Nil, limit)
	names := make([]string, len(found))

	for i, n := range found {
		names[i] = n.Name
	}

	return names, err
}

// NoDataset returns the fault for a dataset in a body that does not exist or that the caller may not see; the message is
// the same for both.
func (c Catalog) NoDataset(ctx context.Context, q postgres.Querier, who auth.Principal, at Path) error {
	names, err := c.Names(ctx, q, who, at, maxSuggested)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	return missing(fmt.Sprintf("There is no dataset %q that you can see.", at.Dataset), at.Dataset, names, "")
}

func missing(message, name string, seen []string, advice string) error {
	if near := lexicon.Nearest(name, seen); len(near) > 0 {
		message += " Did you mean " + near[0] + "?"
	} else if len(seen) > 0 {
		message += " You can see: " + strings.Join(seen[:min(len(seen), maxShown)], ", ") + "."
	}

	return fault.New(fault.NotFound, message+advice)
}
