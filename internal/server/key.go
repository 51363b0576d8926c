package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) PutKey(ctx context.Context, request api.PutKeyRequestObject) (api.PutKeyResponseObject, error) {
	want := catalog.Key{Columns: request.Body.Columns, Duplicates: catalog.SetAside}
	if given := request.Body.Duplicates; given != nil {
		want.Duplicates = catalog.Duplicates(*given)
	}

	saved, err := h.ingest.DeclareKey(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName), want)
	if err != nil {
		return nil, err
	}

	return api.PutKey200JSONResponse(showKey(saved)), nil
}

func (h handlers) DeleteKey(ctx context.Context, request api.DeleteKeyRequestObject) (api.DeleteKeyResponseObject, error) {
	return api.DeleteKey204Response{}, h.ingest.RemoveKey(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
}

func showKey(k catalog.Key) api.DatasetKey {
	return api.DatasetKey{Columns: k.Columns, Duplicates: api.KeyDuplicates(k.Duplicates)}
}
