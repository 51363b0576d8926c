package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) ListDeleted(ctx context.Context, request api.ListDeletedRequestObject) (api.ListDeletedResponseObject, error) {
	after, err := cursorMoment(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who := callOf(ctx).who

	list, next, err := h.catalog.Deleted(ctx, who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListDeleted200JSONResponse{Data: make([]api.DeletedItem, len(list)), NextCursor: nextMoment(ctx, next)}
	for i, one := range list {
		page.Data[i] = api.DeletedItem{
			ID: one.ID, Kind: api.DeletedKind(one.Kind), Username: who.Username, Namespace: one.Namespace, Dataset: orAbsent(one.Dataset),
			DeletedAt: one.DeletedAt, ErasedAt: one.ErasedAt,
		}
	}

	return page, nil
}

func (h handlers) RestoreDeleted(ctx context.Context, request api.RestoreDeletedRequestObject) (api.RestoreDeletedResponseObject, error) {
	want := catalog.Restoration{ID: request.DeletedID}
	if request.Body != nil && request.Body.Name != nil {
		want.Name = *request.Body.Name
	}

	who := callOf(ctx).who

	restored, err := h.catalog.Restore(ctx, who, want)
	if err != nil {
		return nil, err
	}

	return api.RestoreDeleted200JSONResponse{
		ID: restored.ID, Kind: api.DeletedKind(restored.Kind), Username: who.Username, Namespace: restored.Namespace, Dataset: orAbsent(restored.Dataset),
	}, nil
}

// orAbsent returns nil for an empty text.
func orAbsent(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}
