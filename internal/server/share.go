package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) ListNamespaceShares(ctx context.Context, request api.ListNamespaceSharesRequestObject) (api.ListNamespaceSharesResponseObject, error) {
	list, err := h.shares(ctx, datasetPath(request.Username, request.Namespace, ""))

	return api.ListNamespaceShares200JSONResponse(list), err
}

func (h handlers) ListDatasetShares(ctx context.Context, request api.ListDatasetSharesRequestObject) (api.ListDatasetSharesResponseObject, error) {
	list, err := h.shares(ctx, datasetPath(request.Username, request.Namespace, request.DatasetName))

	return api.ListDatasetShares200JSONResponse(list), err
}

func (h handlers) shares(ctx context.Context, at catalog.Path) (api.ShareList, error) {
	shares, err := h.catalog.Shares(ctx, callOf(ctx).who, at)

	return shareList(shares), err
}

func shareList(shares []catalog.Share) api.ShareList {
	list := make(api.ShareList, 0, len(shares))

	for _, share := range shares {
		entry := api.Share{Username: share.Grantee, Role: api.ShareRole(share.Role)}
		if share.Pending {
			entry.Pending = new(true)
		}

		if share.ViaNamespace {
			entry.Via = new(api.ShareViaNamespace)
		}

		list = append(list, entry)
	}

	return list
}

func (h handlers) LeaveNamespace(ctx context.Context, request api.LeaveNamespaceRequestObject) (api.LeaveNamespaceResponseObject, error) {
	left, err := h.catalog.Leave(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, ""))

	return api.LeaveNamespace200JSONResponse{Remaining: shareList(left)}, err
}

func (h handlers) LeaveDataset(ctx context.Context, request api.LeaveDatasetRequestObject) (api.LeaveDatasetResponseObject, error) {
	left, err := h.catalog.Leave(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))

	return api.LeaveDataset200JSONResponse{Remaining: shareList(left)}, err
}

func (h handlers) GrantNamespaceShare(ctx context.Context, request api.GrantNamespaceShareRequestObject) (api.GrantNamespaceShareResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, "")

	return api.GrantNamespaceShare200Response{}, h.share(ctx, at, request.Body, request.Params.IdempotencyKey)
}

func (h handlers) GrantDatasetShare(ctx context.Context, request api.GrantDatasetShareRequestObject) (api.GrantDatasetShareResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	return api.GrantDatasetShare200Response{}, h.share(ctx, at, request.Body, request.Params.IdempotencyKey)
}

func (h handlers) share(ctx context.Context, at catalog.Path, body *api.NewShare, key *string) error {
	return h.catalog.Share(ctx, callOf(ctx).who, at, catalog.NewShare{Grantee: body.Username, Role: auth.Role(body.Role), Once: once(ctx, key)})
}

func (h handlers) RevokeNamespaceShare(ctx context.Context, request api.RevokeNamespaceShareRequestObject) (api.RevokeNamespaceShareResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, "")

	return api.RevokeNamespaceShare200Response{}, h.catalog.Unshare(ctx, callOf(ctx).who, at, request.Body.Username)
}

func (h handlers) RevokeDatasetShare(ctx context.Context, request api.RevokeDatasetShareRequestObject) (api.RevokeDatasetShareResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	return api.RevokeDatasetShare200Response{}, h.catalog.Unshare(ctx, callOf(ctx).who, at, request.Body.Username)
}
