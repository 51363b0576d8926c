package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Targets returns a function that turns the paths that a token is restricted to into ids. The token therefore still
// reaches a renamed target, but not a new one with the same name. The function runs when the token is created, not
// when the response is repeated.
//
// Faults: ValidationFailed for a path that the caller may not see.
func (c Catalog) Targets(who auth.Principal, paths []Path) auth.Resolve {
	return func(ctx context.Context, tx postgres.Tx) (targets []auth.Target, err error) {
		for i, path := range paths {
			target, err := c.target(ctx, tx, who, path)
			if fault.Is(err, fault.NotFound) {
				return nil, fault.Invalid(fmt.Sprintf("accessRestrictedTo.%d", i), unseenTarget(path))
			}

			if err != nil {
				return nil, err
			}

			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}

		return targets, nil
	}
}

// unseenTarget says that a path names nothing that the caller may see. It repeats only the path.
func unseenTarget(path Path) string {
	if path.Dataset == "" {
		return fmt.Sprintf("There is no namespace %q that you own or that is shared with you as a whole. GET /schema/%s/namespaces lists namespaces.",
			path.Username+"/"+path.Namespace, path.Username)
	}

	return fmt.Sprintf("There is no dataset %q that you can see. GET /schema/%s/%s/datasets lists those that you can see.",
		path.Username+"/"+path.Namespace+"/"+path.Dataset, path.Username, path.Namespace)
}

func (c Catalog) target(ctx context.Context, q postgres.Querier, who auth.Principal, path Path) (auth.Target, error) {
	if path.Dataset == "" {
		namespace, err := c.allowNamespace(ctx, q, who, auth.Viewer, path)

		return auth.Target{Kind: kindNamespace, Account: namespace.Account, ID: namespace.ID}, err
	}

	dataset, err := c.Allow(ctx, q, who, auth.Viewer, path)

	return auth.Target{Kind: kindDataset, Account: dataset.Account, ID: dataset.ID}, err
}

// Paths returns the current paths of targets. It omits targets that the caller may no longer see.
func (c Catalog) Paths(ctx context.Context, who auth.Principal, targets []auth.Target) (paths []Path, err error) {
	if len(targets) == 0 {
		return nil, nil
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		var accounts []uuid.UUID
		for _, target := range targets {
			accounts = append(accounts, target.Account)
		}

		owners, err := selectUsernames(ctx, q, accounts)
		if err != nil {
			return err
		}

		for _, target := range targets {
			path, visible, err := c.path(ctx, q, who, target)
			if err != nil {
				return err
			}

			if visible {
				path.Username = owners[target.Account]
				paths = append(paths, path)
			}
		}

		return nil
	})

	return paths, err
}

func (c Catalog) path(ctx context.Context, q postgres.Querier, who auth.Principal, target auth.Target) (path Path, visible bool, err error) {
	ids := []uuid.UUID{target.ID}

	if target.Kind == kindNamespace {
		found, err := first(selectNamespacesByID(ctx, q, target.Account, who, ids))
		if err != nil || found == nil {
			return Path{}, false, err
		}

		return Path{Namespace: found.Name}, found.access.role(who) != "", nil
	}

	found, err := first(selectDatasetsByID(ctx, q, target.Account, who, ids))
	if err != nil || found == nil {
		return Path{}, false, err
	}

	return Path{Namespace: found.Namespace, Dataset: found.Name}, found.access.role(who) != "", nil
}
