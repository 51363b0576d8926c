package server

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) ListNamespaces(ctx context.Context, request api.ListNamespacesRequestObject) (api.ListNamespacesResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who

	list, next, err := h.catalog.Namespaces(ctx, who, request.Username, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	return api.ListNamespaces200JSONResponse{Data: h.namespaceItems(list, who), NextCursor: nextCursor(ctx, next)}, nil
}

func (h handlers) ListAllNamespaces(ctx context.Context, request api.ListAllNamespacesRequestObject) (api.ListAllNamespacesResponseObject, error) {
	after, err := cursorPosition(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who

	list, next, err := h.catalog.AllNamespaces(ctx, who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	return api.ListAllNamespaces200JSONResponse{Data: h.namespaceItems(list, who), NextCursor: nextPosition(ctx, next)}, nil
}

func (h handlers) CreateNamespace(ctx context.Context, request api.CreateNamespaceRequestObject) (api.CreateNamespaceResponseObject, error) {
	who := callOf(ctx).who
	want := catalog.NewNamespace{Name: request.Body.Name, Once: once(ctx, request.Params.IdempotencyKey)}

	if request.Body.Exposure != nil {
		want.Exposure = catalog.Exposure(*request.Body.Exposure)
	}

	made, err := h.catalog.CreateNamespace(ctx, who, want)
	if err != nil {
		return nil, err
	}

	return api.CreateNamespace201JSONResponse{
		Body: h.namespaceItem(made, who.Username, who), Headers: api.CreateNamespace201ResponseHeaders{Location: h.address("schema", who.Username, "namespaces", made.Name)},
	}, nil
}

func (h handlers) UpdateNamespace(ctx context.Context, request api.UpdateNamespaceRequestObject) (api.UpdateNamespaceResponseObject, error) {
	who := callOf(ctx).who
	at := catalog.Path{Username: request.Username, Namespace: request.Namespace}

	var change catalog.NamespaceChange
	if request.Body.Name != nil {
		change.Name = *request.Body.Name
	}

	if request.Body.Exposure != nil {
		change.Exposure = catalog.Exposure(*request.Body.Exposure)
	}

	changed, err := h.catalog.UpdateNamespace(ctx, who, at, change)
	if err != nil {
		return nil, err
	}

	return api.UpdateNamespace200JSONResponse(h.namespaceItem(changed, who.Username, who)), nil
}

func (h handlers) DeleteNamespace(ctx context.Context, request api.DeleteNamespaceRequestObject) (api.DeleteNamespaceResponseObject, error) {
	at := catalog.Path{Username: request.Username, Namespace: request.Namespace}
	if err := h.catalog.DeleteNamespace(ctx, callOf(ctx).who, at); err != nil {
		return nil, err
	}

	return api.DeleteNamespace204Response{}, nil
}

func (h handlers) ListDatasets(ctx context.Context, request api.ListDatasetsRequestObject) (api.ListDatasetsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who
	at := catalog.Path{Username: request.Username, Namespace: request.Namespace}

	list, next, err := h.catalog.Datasets(ctx, who, at, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	return api.ListDatasets200JSONResponse{Data: h.datasetItems(list, who), NextCursor: nextCursor(ctx, next)}, nil
}

func (h handlers) SearchDatasets(ctx context.Context, request api.SearchDatasetsRequestObject) (api.SearchDatasetsResponseObject, error) {
	if request.Params.Q != nil {
		return h.searchDatasets(ctx, *request.Params.Q, request.Params)
	}

	after, err := cursorPosition(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who

	list, next, err := h.catalog.All(ctx, who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	return api.SearchDatasets200JSONResponse{Data: h.datasetItems(list, who), NextCursor: nextPosition(ctx, next)}, nil
}

func (h handlers) searchDatasets(ctx context.Context, words string, params api.SearchDatasetsParams) (api.SearchDatasetsResponseObject, error) {
	after, err := cursorRank(ctx, params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who

	list, next, err := h.catalog.Search(ctx, who, catalog.Search{Words: words, After: after, Limit: pageLimit(params.Limit)})
	if err != nil {
		return nil, err
	}

	return api.SearchDatasets200JSONResponse{Data: h.datasetItems(list, who), NextCursor: nextRank(ctx, next)}, nil
}

func (h handlers) namespaceItems(list []catalog.NamespaceItem, who auth.Principal) []api.NamespaceItem {
	items := make([]api.NamespaceItem, len(list))
	for i, item := range list {
		items[i] = h.namespaceItem(item.Namespace, item.Owner, who)
	}

	return items
}

func (h handlers) namespaceItem(n catalog.Namespace, owner string, who auth.Principal) api.NamespaceItem {
	item := api.NamespaceItem{Username: owner, Name: n.Name, Exposure: api.Exposure(h.catalog.Exposed(n.Exposure)), CreatedAt: n.CreatedAt}
	if role := n.Role(who); role != "" {
		item.Role = new(api.Role(role))
	}

	return item
}

func (h handlers) datasetItems(list []catalog.Item, who auth.Principal) []api.DatasetItem {
	items := make([]api.DatasetItem, 0, len(list))
	for _, d := range list {
		item := api.DatasetItem{
			Username: d.Owner, Namespace: d.Namespace, Name: d.Name, Role: api.Role(d.Role(who)), Exposure: api.Exposure(h.catalog.Exposed(d.Exposure)),
			DataDescription: d.DataDescription, RowCount: d.RowCount, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
		}

		if d.SnapshotID != uuid.Nil {
			item.ByteCount = new(d.Bytes)
		}

		if len(d.MatchedIn) > 0 {
			item.MatchedIn = new([]api.SearchPlace{})
			for _, place := range d.MatchedIn {
				*item.MatchedIn = append(*item.MatchedIn, api.SearchPlace(place))
			}
		}

		items = append(items, item)
	}

	return items
}
