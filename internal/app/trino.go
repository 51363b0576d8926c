package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/engine/trino"
	"quern.dev/quern/internal/icebergrest"
	"quern.dev/quern/internal/query"
)

// newTrino returns the client of the cluster.
func newTrino(c config.Trino) (*trino.Trino, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("QUERN_TRINO: %w", err)
	}

	return trino.New(trino.Config{URL: string(c.URL), Catalog: c.Catalog, Client: client, Memory: int64(c.Memory), Scan: int64(c.Scan)})
}

// newCluster returns what runs statements on Trino.
func (a *App) newCluster() (*query.Cluster, error) {
	c := a.config

	if c.Catalog.Listen == "" {
		return nil, errors.New("QUERN_CATALOG_LISTEN is required if QUERN_TRINO_URL is set")
	}

	client, err := newTrino(c.Trino)
	if err != nil {
		return nil, err
	}

	return &query.Cluster{Trino: client, Schemas: a.schemas(), MaxRunning: c.Trino.MaxRunning}, nil
}

// schemas returns the store of the schemas, one for each statement on Trino.
func (a *App) schemas() icebergrest.Schemas { return icebergrest.Schemas{DB: a.db, Now: time.Now} }

// trinoCatalog returns the catalog that Trino reads.
func (a *App) trinoCatalog() http.Handler {
	return &icebergrest.Catalog{Schemas: a.schemas(), Lake: a.lake, Log: a.quiet, Secret: a.config.Catalog.Secret.Reveal()}
}

// trino runs a statement on the cluster as the service would. The statement reads nothing.
func (d doctor) trino(ctx context.Context) []finding {
	const name = "trino"

	if d.config.Catalog.Listen == "" {
		return []finding{fail(name, "QUERN_TRINO_URL is set, but QUERN_CATALOG_LISTEN is not", "set QUERN_CATALOG_LISTEN and QUERN_CATALOG_SECRET, or remove QUERN_TRINO_URL")}
	}

	cluster, err := newTrino(d.config.Trino)
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_TRINO_URL and QUERN_TRINO_CA_FILE")}
	}

	if err := cluster.Check(ctx, modelTime); err != nil {
		return []finding{fail(name, "it does not run statements: "+causeOf(err), "check that the coordinator and its workers run, QUERN_TRINO_URL, and the rules of docs/trino.md")}
	}

	return []finding{good(name, "the cluster runs statements")}
}
