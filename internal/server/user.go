package server

import (
	"context"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) GetMe(ctx context.Context, _ api.GetMeRequestObject) (api.GetMeResponseObject, error) {
	who := callOf(ctx).who

	me := api.GetMe200JSONResponse{ID: who.Account, Username: who.Username, Name: who.Name, Email: who.Email, Groups: who.Groups}
	if who.Operator {
		me.Operator = &who.Operator
	}

	return me, nil
}

func (h handlers) ListTokens(ctx context.Context, request api.ListTokensRequestObject) (api.ListTokensResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	tokens, next, err := h.tokens.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListTokens200JSONResponse{Data: make([]api.Token, 0, len(tokens)), NextCursor: nextCursor(ctx, next)}

	for _, token := range tokens {
		shown, err := h.showToken(ctx, token)
		if err != nil {
			return nil, err
		}

		page.Data = append(page.Data, shown)
	}

	return page, nil
}

func (h handlers) CreateToken(ctx context.Context, request api.CreateTokenRequestObject) (api.CreateTokenResponseObject, error) {
	want := auth.NewToken{Name: request.Body.Name, ExpiresAt: request.Body.ExpiresAt, Once: once(ctx, request.Params.IdempotencyKey)}

	if request.Body.Role != nil {
		want.Role = auth.Role(*request.Body.Role)
	}

	if request.Body.AccessRestrictedTo != nil {
		want.Targets = h.catalog.Targets(callOf(ctx).who, paths(*request.Body.AccessRestrictedTo))
	}

	token, value, err := h.tokens.Create(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	targets, err := h.targets(ctx, token)
	if err != nil {
		return nil, err
	}

	return api.CreateToken201JSONResponse{Headers: api.CreateToken201ResponseHeaders{Location: h.address("user", "tokens", token.ID.String())}, Body: api.CreatedToken{
		ID: token.ID, Name: token.Name, Role: api.Role(token.Role), AccessRestrictedTo: targets,
		CreatedAt: token.CreatedAt, ExpiresAt: token.ExpiresAt, Token: value,
	}}, nil
}

func (h handlers) GetToken(ctx context.Context, request api.GetTokenRequestObject) (api.GetTokenResponseObject, error) {
	token, err := h.tokens.Get(ctx, callOf(ctx).who, request.ID)
	if err != nil {
		return nil, err
	}

	shown, err := h.showToken(ctx, token)

	return api.GetToken200JSONResponse(shown), err
}

func (h handlers) DeleteToken(ctx context.Context, request api.DeleteTokenRequestObject) (api.DeleteTokenResponseObject, error) {
	if err := h.tokens.Delete(ctx, callOf(ctx).who, request.ID); err != nil {
		return nil, err
	}

	return api.DeleteToken204Response{}, nil
}

func (h handlers) GetUsage(ctx context.Context, _ api.GetUsageRequestObject) (api.GetUsageResponseObject, error) {
	usage, err := h.catalog.Usage(ctx, callOf(ctx).who)
	if err != nil {
		return nil, err
	}

	return api.GetUsage200JSONResponse(showUsage(usage)), nil
}

func showUsage(usage catalog.Usage) api.Usage {
	response := api.Usage{Date: openapi_types.Date{Time: usage.Day}, ResetsAt: usage.Resets(), Items: []api.UsageItem{}}

	for _, used := range usage.Items {
		item := api.UsageItem{Kind: string(used.Kind), Used: used.Amount, Limit: used.Limit}
		if used.Kind.Resets() {
			item.ResetsAt = new(usage.Resets())
		}

		if used.Limit != nil {
			item.Left = new(max(0, *used.Limit-used.Amount))
		}

		response.Items = append(response.Items, item)
	}

	return response
}

func (h handlers) showToken(ctx context.Context, token auth.Token) (api.Token, error) {
	targets, err := h.targets(ctx, token)

	return api.Token{
		ID: token.ID, Name: token.Name, Role: api.Role(token.Role), AccessRestrictedTo: targets,
		CreatedAt: token.CreatedAt, ExpiresAt: token.ExpiresAt, LastUsedAt: optionalTime(token.LastUsedAt),
	}, err
}

// targets returns the names of what a token is restricted to.
func (h handlers) targets(ctx context.Context, token auth.Token) ([]api.TokenTarget, error) {
	named, err := h.catalog.Paths(ctx, callOf(ctx).who, token.Targets)
	targets := make([]api.TokenTarget, 0, len(named))

	for _, path := range named {
		target := api.TokenTarget{Username: path.Username, Namespace: path.Namespace}
		if path.Dataset != "" {
			target.Dataset = &path.Dataset
		}

		targets = append(targets, target)
	}

	return targets, err
}

func paths(targets []api.TokenTarget) []catalog.Path {
	var list []catalog.Path

	for _, target := range targets {
		path := catalog.Path{Username: target.Username, Namespace: target.Namespace}
		if target.Dataset != nil {
			path.Dataset = *target.Dataset
		}

		list = append(list, path)
	}

	return list
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}

	return &t
}
