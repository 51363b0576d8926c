package server

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/webhook"
)

func (h handlers) ListWebhooks(ctx context.Context, request api.ListWebhooksRequestObject) (api.ListWebhooksResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.webhooks.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListWebhooks200JSONResponse{Data: make([]api.Webhook, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showWebhook(one)
	}

	return page, nil
}

func (h handlers) CreateWebhook(ctx context.Context, request api.CreateWebhookRequestObject) (api.CreateWebhookResponseObject, error) {
	body := request.Body

	at, err := namespaceFilter(body.Username, body.Namespace)
	if err != nil {
		return nil, err
	}

	if body.DatasetName != nil {
		if at == nil {
			return nil, fault.Invalid("namespace", "is required with datasetName, and username too")
		}

		at.Dataset = *body.DatasetName
	}

	made, secret, err := h.webhooks.Create(ctx, callOf(ctx).who, webhook.Want{
		URL: body.URL, Types: typesOf(body.Types), At: at, Once: once(ctx, request.Params.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}

	shown := showWebhook(made)
	shown.Secret = &secret

	return api.CreateWebhook201JSONResponse{Headers: api.CreateWebhook201ResponseHeaders{Location: h.address("webhooks", made.ID.String())}, Body: shown}, nil
}

func (h handlers) GetWebhook(ctx context.Context, request api.GetWebhookRequestObject) (api.GetWebhookResponseObject, error) {
	found, err := h.webhooks.Get(ctx, callOf(ctx).who, request.WebhookID)

	return api.GetWebhook200JSONResponse(showWebhook(found)), err
}

func (h handlers) UpdateWebhook(ctx context.Context, request api.UpdateWebhookRequestObject) (api.UpdateWebhookResponseObject, error) {
	if request.Body.URL == nil && request.Body.Types == nil && request.Body.Active == nil {
		return nil, fault.New(fault.ValidationFailed, "The request changes nothing. Give url, types or active.")
	}

	change := webhook.Change{URL: request.Body.URL, Active: request.Body.Active}
	if request.Body.Types != nil {
		change.Types = new(typesOf(request.Body.Types))
	}

	changed, err := h.webhooks.Update(ctx, callOf(ctx).who, request.WebhookID, change)

	return api.UpdateWebhook200JSONResponse(showWebhook(changed)), err
}

func (h handlers) DeleteWebhook(ctx context.Context, request api.DeleteWebhookRequestObject) (api.DeleteWebhookResponseObject, error) {
	return api.DeleteWebhook204Response{}, h.webhooks.Delete(ctx, callOf(ctx).who, request.WebhookID)
}

func (h handlers) RotateWebhookSecret(ctx context.Context, request api.RotateWebhookSecretRequestObject) (api.RotateWebhookSecretResponseObject, error) {
	changed, secret, err := h.webhooks.Rotate(ctx, callOf(ctx).who, request.WebhookID)
	shown := showWebhook(changed)
	shown.Secret = &secret

	return api.RotateWebhookSecret200JSONResponse(shown), err
}

func (h handlers) TestWebhook(ctx context.Context, request api.TestWebhookRequestObject) (api.TestWebhookResponseObject, error) {
	sent, err := h.webhooks.Test(ctx, callOf(ctx).who, request.WebhookID)

	return api.TestWebhook200JSONResponse{EventID: sent}, err
}

func (h handlers) ListDeliveries(ctx context.Context, request api.ListDeliveriesRequestObject) (api.ListDeliveriesResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	before := int64(math.MaxInt64)
	if after != uuid.Nil {
		before = int64(binary.BigEndian.Uint64(after[:8])) //nolint:gosec // it was made of one
	}

	found, next, err := h.webhooks.Deliveries(ctx, callOf(ctx).who, request.WebhookID, before, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	var position uuid.UUID // cursors are ids, so the number of the last delivery is put into one

	binary.BigEndian.PutUint64(position[:8], uint64(next)) //nolint:gosec // numbers are positive

	page := api.ListDeliveries200JSONResponse{Data: make([]api.Delivery, len(found)), NextCursor: nextCursor(ctx, position)}
	for i, one := range found {
		page.Data[i] = showDelivery(one)
	}

	return page, nil
}

func typesOf(given *[]api.NoticeType) (types []event.Type) {
	if given != nil {
		for _, one := range *given {
			types = append(types, event.Type(one))
		}
	}

	return types
}

func showWebhook(k webhook.Webhook) api.Webhook {
	shown := api.Webhook{
		ID: k.ID, URL: k.URL, Types: make([]api.NoticeType, len(k.Types)), Status: api.WebhookStatus(k.Status), CreatedAt: k.CreatedAt,
		FailingSinceAt: optionalTime(k.FailingSince), PreviousSecretEndsAt: optionalTime(k.OldUntil),
	}

	for i, one := range k.Types {
		shown.Types[i] = api.NoticeType(one)
	}

	if k.Reason != "" {
		shown.Reason = &k.Reason
	}

	if k.At != nil {
		shown.Username, shown.Namespace = &k.At.Username, &k.At.Namespace
		if k.At.Dataset != "" {
			shown.DatasetName = &k.At.Dataset
		}
	}

	return shown
}

func showDelivery(d webhook.Delivery) api.Delivery {
	shown := api.Delivery{
		EventID: d.EventID, Type: api.NoticeType(d.Type), Status: api.DeliveryStatus(d.State), Attempts: int32(min(d.Attempts, math.MaxInt32)), CreatedAt: d.CreatedAt.UTC(), //nolint:gosec // limited
		TriedAt: optionalTime(d.TriedAt),
	}

	if d.Status != 0 {
		shown.ResponseStatus = new(int32(d.Status)) //nolint:gosec // three digits
	}

	if d.Problem != "" {
		shown.Problem = &d.Problem
	}

	if d.Attempts > 0 {
		shown.LatencyMs = new(int32(min(d.Latency/time.Millisecond, math.MaxInt32))) //nolint:gosec // limited
	}

	return shown
}
