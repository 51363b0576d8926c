package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/postgres"
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
		DB: a.db, Now: time.Now, Keys: keysOf(c), Hosts: c.Hosts, Allowed: c.AllowedNetworks, Transport: transport, Timeout: c.Timeout,
	})

	return nil
}

// RewrapConnections seals the secrets of connections with the current key of the operator.
func (o Operator) RewrapConnections(ctx context.Context) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		n, err := connection.Rewrap(ctx, db, keysOf(o.config.Source))

		return o.said(err, "%d secrets are sealed with QUERN_SOURCE_KEY now", n)
	})
}
