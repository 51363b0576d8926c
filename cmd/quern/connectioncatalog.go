package main

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// catalogFlags are the flags for a connection to a catalog of Iceberg tables. Its store has those of a bucket, and the token and the authority those of addresses.
type catalogFlags struct{ uri, warehouse, client, secret, scope, tokenURI string }

func (f *catalogFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.uri, "catalog", "", "address of an Iceberg REST catalog, before v1; --endpoint, --bucket and the access key are those of its store")
	flags.StringVar(&f.warehouse, "warehouse", "", "warehouse of the catalog")
	flags.StringVar(&f.client, "client-id", "", "id of a client that gets a token from the catalog (OAuth 2)")
	flags.StringVar(&f.secret, "client-secret-file", "", "file with the secret of the client")
	flags.StringVar(&f.scope, "scope", "", "scope of the token; catalog if absent")
	flags.StringVar(&f.tokenURI, "token-url", "", "address that gives the client its token, if that is not the catalog")
}

func (f *catalogFlags) read(command *cobra.Command, address addressFlags) (*api.NewIcebergSettings, error) {
	settings := &api.NewIcebergSettings{URI: f.uri, Warehouse: given[string](f.warehouse), ClientID: given[string](f.client), Scope: given[string](f.scope), TokenURI: given[string](f.tokenURI)}

	for file, place := range map[string]**string{address.token: &settings.Token, f.secret: &settings.ClientSecret} {
		if file == "" {
			continue
		}

		secret, err := readSecret(command, file)
		if err != nil {
			return nil, err
		}

		*place = &secret
	}

	var err error
	settings.CaCertificate, err = address.authority()

	return settings, err
}

// catalogIs reports whether a connection is to a catalog.
func catalogIs(ctx context.Context, client *api.Client, connection uuid.UUID) (bool, error) {
	found, err := api.Read[api.Connection](client.GetConnection(ctx, connection))

	return found.Kind == api.Iceberg, err
}

// attach makes a source that attaches a table.
func (p *program) attach(ctx context.Context, client *api.Client, wanted api.NewSource, rows rowsFlags) error {
	at := strings.LastIndex(rows.table, ".")
	if at < 1 {
		return usageError{errors.New("give --table with the namespace and the name of a table of the catalog, such as sales.orders"), "quern source add"}
	}

	wanted.Iceberg, wanted.Options = &api.IcebergTable{Namespace: rows.table[:at], Table: rows.table[at+1:]}, nil

	made, err := api.Read[api.Source](client.CreateSource(ctx, nil, wanted))
	if err != nil {
		return err
	}

	return p.done("Added the source %s. `quern source run %s` attaches %s as %s.", p.out.clean(made.Name), p.out.clean(made.Name), p.out.clean(rows.table), p.out.clean(datasetOf(made)))
}

// normalCatalog fills in what the service does for settings that are left out.
func normalCatalog(c api.IcebergSettings) *api.IcebergSettings {
	c.URI = strings.TrimRight(c.URI, "/") + "/"
	c.Store.Endpoint = strings.TrimRight(c.Store.Endpoint, "/")

	if c.Auth == "" {
		c.Auth = api.IcebergAuthNone
		if c.ClientID != nil {
			c.Auth = api.IcebergAuthClient
		}
	}

	return &c
}

func validCatalog(c api.IcebergSettings) error {
	if !c.Auth.Valid() || (c.Auth == api.IcebergAuthClient) != (c.ClientID != nil) {
		return errors.New("auth must be none, bearer or client, and only client has a clientId")
	}

	return nil
}

// catalogSecret returns the token or the secret of the client of a catalog, and an empty text if it needs none.
func (a *application) catalogSecret(wanted connectionEntry) (string, error) {
	if wanted.Iceberg == nil || normalCatalog(*wanted.Iceberg).Auth == api.IcebergAuthNone {
		return "", nil
	}

	return a.secretOf(wanted.Name + "/catalog")
}

// newCatalog returns the settings of a connection that is to be made.
func newCatalog(c api.IcebergSettings, credentials, key string) *api.NewIcebergSettings {
	made := &api.NewIcebergSettings{
		URI: c.URI, Warehouse: c.Warehouse, ClientID: c.ClientID, Scope: c.Scope, TokenURI: c.TokenURI, CaCertificate: c.CaCertificate,
		Store: api.NewS3Settings{
			Endpoint: c.Store.Endpoint, Region: c.Store.Region, Bucket: c.Store.Bucket, Prefix: given[string](c.Store.Prefix), PathStyle: &c.Store.PathStyle,
			AccessKeyID: c.Store.AccessKeyID, SecretAccessKey: key,
		},
	}

	switch c.Auth {
	case api.IcebergAuthBearer:
		made.Token = &credentials
	case api.IcebergAuthClient:
		made.ClientSecret = &credentials
	case api.IcebergAuthNone:
	}

	return made
}
