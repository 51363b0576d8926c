package server

import (
	"quern.dev/quern/api"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
)

// readCatalog fails unless the settings have a token, an id with a secret of a client, or neither.
func readCatalog(body api.NewIcebergSettings) (settings connection.Iceberg, secret string, err error) {
	settings = connection.Iceberg{
		URI: body.URI, Warehouse: value(body.Warehouse), Auth: connection.NoAuth, ClientID: value(body.ClientID), Scope: value(body.Scope), TokenURI: value(body.TokenURI), CA: value(body.CaCertificate),
		Store: connection.S3{
			Endpoint: body.Store.Endpoint, Region: body.Store.Region, Bucket: body.Store.Bucket, Prefix: value(body.Store.Prefix), PathStyle: value(body.Store.PathStyle),
			AccessKeyID: body.Store.AccessKeyID,
		},
	}
	credentials := value(body.Token)

	switch isClient := body.ClientID != nil || body.ClientSecret != nil || body.Scope != nil || body.TokenURI != nil; {
	case !isClient && body.Token == nil:
	case !isClient:
		settings.Auth = connection.Bearer
	case body.ClientID != nil && body.ClientSecret != nil && body.Token == nil:
		settings.Auth, credentials = connection.Client, *body.ClientSecret
	default:
		return settings, "", fault.Invalid("iceberg", "must have either token, or clientId and clientSecret, or none of them; scope and tokenUri are only for a client")
	}

	secret, err = connection.IcebergSecret(credentials, body.Store.SecretAccessKey)

	return settings, secret, err
}

func showCatalog(of connection.Iceberg) *api.IcebergSettings {
	return &api.IcebergSettings{
		URI: of.URI, Warehouse: optionalText(of.Warehouse), Auth: api.IcebergAuth(of.Auth), ClientID: optionalText(of.ClientID), Scope: optionalText(of.Scope), TokenURI: optionalText(of.TokenURI),
		CaCertificate: optionalText(of.CA), Store: showStore(of.Store),
	}
}

func showStore(of connection.S3) api.S3Settings {
	return api.S3Settings{Endpoint: of.Endpoint, Region: of.Region, Bucket: of.Bucket, Prefix: of.Prefix, PathStyle: of.PathStyle, AccessKeyID: of.AccessKeyID}
}
