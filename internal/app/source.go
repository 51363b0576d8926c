package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/extract"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/source"
	"quern.dev/quern/internal/upload"
)

func keysOf(c config.Source) connection.Keys {
	return connection.Keys{Current: c.Key.Reveal(), Other: c.OtherKey.Reveal()}
}

// newConnections wires the connections to other systems.
func (a *App) newConnections() error {
	c := a.config.Source

	client, err := httpClient(config.Connection{CAFile: c.CAFile, Timeout: c.Timeout})
	if err != nil {
		return fmt.Errorf("QUERN_SOURCE_%w", err)
	}

	transport, _ := client.Transport.(*http.Transport)
	a.connections = connection.New(connection.Config{
		DB: a.db, Catalog: a.catalog(), Now: time.Now, Keys: keysOf(c), Hosts: c.Hosts, Allowed: c.AllowedNetworks, Transport: transport, Timeout: c.Timeout,
		Extract: extract.Limits{
			Statement: c.StatementTimeout, Page: c.PageRows, Wait: c.PageWait, Rows: int64(c.MaxRows), Bytes: int64(c.MaxBytes), Duration: c.LoadTimeout,
		},
	})

	return nil
}

// newSources wires the sources.
func (a *App) newSources(uploads upload.Uploads, loading *ingest.Ingest) *source.Sources {
	return &source.Sources{
		DB: a.db, Catalog: a.catalog(), Connections: a.connections, Uploads: uploads, Ingest: loading, Credentials: a.credentials(),
		Jobs: func() *job.Client { return a.jobs }, Log: a.log, Now: time.Now,
	}
}

// RewrapConnections seals the secrets of connections with the current key of the operator.
func (o Operator) RewrapConnections(ctx context.Context) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		n, err := connection.Rewrap(ctx, db, keysOf(o.config.Source))

		return o.said(err, "%d secrets are sealed with QUERN_SOURCE_KEY now", n)
	})
}
