package app

import (
	"context"
	"fmt"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// SetEngine sets the engine of the dataset at OWNER/NAMESPACE/DATASET.
func (o Operator) SetEngine(ctx context.Context, path, name string) error {
	at, err := parsePath(path)
	if err != nil {
		return err
	}

	engine, err := catalog.ParseEngine(name)
	if err != nil {
		return err
	}

	if engine == catalog.Trino && o.config.Trino.URL == "" {
		return fault.New(fault.Conflict, "This deployment has no settings for Trino. Set QUERN_TRINO_URL, as docs/trino.md describes.")
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		return o.said(c.SetEngine(ctx, at, engine), "the engine of %s is %s", at, engine)
	})
}

// ListEngines prints the datasets whose engine is not DuckDB.
func (o Operator) ListEngines(ctx context.Context) error {
	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		paths, err := c.OnTrino(ctx)
		for _, at := range paths {
			_, _ = fmt.Fprintf(o.out, "%s\t%s\n", at, catalog.Trino)
		}

		return err
	})
}
