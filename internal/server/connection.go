package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
)

func (h handlers) ListConnections(ctx context.Context, request api.ListConnectionsRequestObject) (api.ListConnectionsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.connections.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListConnections200JSONResponse{Data: make([]api.Connection, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showConnection(one)
	}

	return page, nil
}

func (h handlers) CreateConnection(ctx context.Context, request api.CreateConnectionRequestObject) (api.CreateConnectionResponseObject, error) {
	want, err := readConnection(*request.Body)
	if err != nil {
		return nil, err
	}

	want.Once = once(ctx, request.Params.IdempotencyKey)

	made, err := h.connections.Create(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	return api.CreateConnection201JSONResponse{
		Headers: api.CreateConnection201ResponseHeaders{Location: h.address("connections", made.ID.String())}, Body: showConnection(made),
	}, nil
}

// readConnection fails unless the body has the settings of its kind, and no others.
func readConnection(body api.NewConnection) (connection.Want, error) {
	want := connection.Want{Name: body.Name, Kind: string(body.Kind)}

	switch {
	case body.Kind == api.S3 && body.S3 != nil && body.Postgresql == nil && body.HTTPS == nil && body.Iceberg == nil:
		want.Secret = body.S3.SecretAccessKey
		want.S3 = connection.S3{
			Endpoint: body.S3.Endpoint, Region: body.S3.Region, Bucket: body.S3.Bucket, Prefix: value(body.S3.Prefix), PathStyle: body.S3.PathStyle != nil && *body.S3.PathStyle,
			AccessKeyID: body.S3.AccessKeyID,
		}
	case body.Kind == api.HTTPS && body.HTTPS != nil && body.S3 == nil && body.Postgresql == nil && body.Iceberg == nil:
		var err error
		if want.HTTPS, want.Secret, err = readAddress(*body.HTTPS); err != nil {
			return connection.Want{}, err
		}
	case body.Kind == api.Postgresql && body.Postgresql != nil && body.S3 == nil && body.HTTPS == nil && body.Iceberg == nil:
		want.Secret = body.Postgresql.Password
		want.Postgres = connection.Postgres{
			Host: body.Postgresql.Host, Port: connection.PostgresPort, Database: body.Postgresql.Database, User: body.Postgresql.User, SSLMode: connection.VerifyFull,
		}

		if body.Postgresql.Port != nil {
			want.Postgres.Port = uint16(*body.Postgresql.Port) //nolint:gosec // the contract limits it
		}

		if body.Postgresql.SslMode != nil {
			want.Postgres.SSLMode = string(*body.Postgresql.SslMode)
		}
	case body.Kind == api.Iceberg && body.Iceberg != nil && body.S3 == nil && body.HTTPS == nil && body.Postgresql == nil:
		var err error
		if want.Iceberg, want.Secret, err = readCatalog(*body.Iceberg); err != nil {
			return connection.Want{}, err
		}
	default:
		return connection.Want{}, fault.Invalid(string(body.Kind), "must have the settings of this kind, and those of another kind must be absent")
	}

	return want, nil
}

// readAddress fails unless the settings have a token, a user with a password, or neither.
func readAddress(body api.NewHTTPSSettings) (settings connection.HTTPS, secret string, err error) {
	settings = connection.HTTPS{BaseURL: body.BaseURL, Auth: connection.NoAuth, User: value(body.User), CA: value(body.CaCertificate)}

	switch {
	case body.Token == nil && body.User == nil && body.Password == nil:
		return settings, "", nil
	case body.Token != nil && body.User == nil && body.Password == nil:
		settings.Auth = connection.Bearer

		return settings, *body.Token, nil
	case body.Token == nil && body.User != nil && body.Password != nil:
		settings.Auth = connection.Basic

		return settings, *body.Password, nil
	default:
		return settings, "", fault.Invalid("https", "must have either token, or user and password, or none of them")
	}
}

func (h handlers) GetConnection(ctx context.Context, request api.GetConnectionRequestObject) (api.GetConnectionResponseObject, error) {
	found, err := h.connections.Get(ctx, callOf(ctx).who, request.ConnectionID)

	return api.GetConnection200JSONResponse(showConnection(found)), err
}

func (h handlers) UpdateConnection(ctx context.Context, request api.UpdateConnectionRequestObject) (api.UpdateConnectionResponseObject, error) {
	body := request.Body
	change := connection.Change{Name: body.Name, Password: body.Password, Token: body.Token}

	switch {
	case body.AccessKeyID != nil && body.SecretAccessKey != nil:
		change.Keys = &connection.AccessKey{ID: *body.AccessKeyID, Secret: *body.SecretAccessKey}
	case body.AccessKeyID != nil || body.SecretAccessKey != nil:
		return nil, fault.New(fault.ValidationFailed, "Give accessKeyId and secretAccessKey together.")
	case body.Name == nil && body.Password == nil && body.Token == nil:
		return nil, fault.New(fault.ValidationFailed, "The request changes nothing. Give name, accessKeyId and secretAccessKey, password or token.")
	}

	changed, err := h.connections.Update(ctx, callOf(ctx).who, request.ConnectionID, change)

	return api.UpdateConnection200JSONResponse(showConnection(changed)), err
}

func (h handlers) DeleteConnection(ctx context.Context, request api.DeleteConnectionRequestObject) (api.DeleteConnectionResponseObject, error) {
	return api.DeleteConnection204Response{}, h.connections.Delete(ctx, callOf(ctx).who, request.ConnectionID)
}

func (h handlers) TestConnection(ctx context.Context, request api.TestConnectionRequestObject) (api.TestConnectionResponseObject, error) {
	tested, err := h.connections.Test(ctx, callOf(ctx).who, request.ConnectionID)

	return api.TestConnection200JSONResponse(showConnection(tested)), err
}

func (h handlers) ListConnectionFiles(ctx context.Context, request api.ListConnectionFilesRequestObject) (api.ListConnectionFilesResponseObject, error) {
	after, err := cursorText(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	prefix := ""
	if request.Params.Prefix != nil {
		prefix = *request.Params.Prefix
	}

	found, next, err := h.connections.Files(ctx, callOf(ctx).who, request.ConnectionID, prefix, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListConnectionFiles200JSONResponse{Data: make([]api.ConnectionFile, len(found)), NextCursor: nextText(ctx, next)}
	for i, one := range found {
		page.Data[i] = api.ConnectionFile{Path: one.Path, Size: one.Size, ModifiedAt: one.Modified.UTC()}
	}

	return page, nil
}

func (h handlers) ListConnectionShares(ctx context.Context, request api.ListConnectionSharesRequestObject) (api.ListConnectionSharesResponseObject, error) {
	found, err := h.connections.Shares(ctx, callOf(ctx).who, request.ConnectionID)
	if err != nil {
		return nil, err
	}

	list := make(api.ListConnectionShares200JSONResponse, len(found))
	for i, share := range found {
		list[i].Username = share.Grantee
		if share.Pending {
			list[i].Pending = new(true)
		}
	}

	return list, nil
}

func (h handlers) ShareConnection(ctx context.Context, request api.ShareConnectionRequestObject) (api.ShareConnectionResponseObject, error) {
	want := connection.NewShare{Grantee: request.Body.Username, Once: once(ctx, request.Params.IdempotencyKey)}

	return api.ShareConnection200Response{}, h.connections.Share(ctx, callOf(ctx).who, request.ConnectionID, want)
}

func (h handlers) UnshareConnection(ctx context.Context, request api.UnshareConnectionRequestObject) (api.UnshareConnectionResponseObject, error) {
	return api.UnshareConnection200Response{}, h.connections.Unshare(ctx, callOf(ctx).who, request.ConnectionID, request.Body.Username)
}

func showConnection(c connection.Connection) api.Connection {
	shown := api.Connection{
		ID: c.ID, Owner: optionalText(c.Owner), Name: c.Name, Kind: api.ConnectionKind(c.Kind), TestedAt: c.TestedAt.UTC(), CreatedAt: c.CreatedAt.UTC(),
	}

	switch c.Kind {
	case connection.KindPostgres:
		shown.Postgresql = &api.PostgresSettings{
			Host: c.Postgres.Host, Port: int32(c.Postgres.Port), Database: c.Postgres.Database, User: c.Postgres.User, SslMode: api.PostgresSSLMode(c.Postgres.SSLMode),
		}
	case connection.KindIceberg:
		shown.Iceberg = showCatalog(c.Iceberg)
	case connection.KindHTTPS:
		shown.HTTPS = &api.HTTPSSettings{
			BaseURL: c.HTTPS.BaseURL, Auth: api.HTTPSAuth(c.HTTPS.Auth), User: optionalText(c.HTTPS.User), CaCertificate: optionalText(c.HTTPS.CA),
		}
	default:
		shown.S3 = &api.S3Settings{
			Endpoint: c.S3.Endpoint, Region: c.S3.Region, Bucket: c.S3.Bucket, Prefix: c.S3.Prefix, PathStyle: c.S3.PathStyle, AccessKeyID: c.S3.AccessKeyID,
		}
	}

	if c.Problem != "" {
		shown.Problem = &api.ConnectionProblem{Code: c.Problem, Message: c.Told()}
	}

	return shown
}
