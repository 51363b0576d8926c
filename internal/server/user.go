package server

import (
	"context"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

func (h handlers) GetMe(ctx context.Context, _ api.GetMeRequestObject) (api.GetMeResponseObject, error) {
	who := callOf(ctx).who

	return api.GetMe200JSONResponse{
		ID: who.Account, Username: who.Username, Name: who.Name, Email: who.Email, Groups: who.Groups,
	}, nil
}

func (h handlers) ListTokens(ctx context.Context, request api.ListTokensRequestObject) (api.ListTokensResponseObject, error) {
	after, err := cursorID(request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	tokens, next, err := h.tokens.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListTokens200JSONResponse{Data: make([]api.Token, 0, len(tokens)), NextCursor: nextCursor(next)}
	for _, token := range tokens {
		page.Data = append(page.Data, api.Token{
			ID: token.ID, Name: token.Name, Role: api.Role(token.Role), AccessRestrictedTo: []api.TokenTarget{},
			CreatedAt: token.CreatedAt, ExpiresAt: token.ExpiresAt, LastUsedAt: optionalTime(token.LastUsedAt),
		})
	}

	return page, nil
}

func (h handlers) CreateToken(ctx context.Context, request api.CreateTokenRequestObject) (api.CreateTokenResponseObject, error) {
	want := auth.NewToken{Name: request.Body.Name, ExpiresAt: request.Body.ExpiresAt, Once: once(ctx, request.Params.IdempotencyKey)}

	if request.Body.Role != nil {
		want.Role = auth.Role(*request.Body.Role)
	}

	if request.Body.AccessRestrictedTo != nil && len(*request.Body.AccessRestrictedTo) > 0 {
		return nil, fault.Invalid("accessRestrictedTo", "cannot be given yet: there are no namespaces to restrict a token to")
	}

	token, value, err := h.tokens.Create(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	return api.CreateToken200JSONResponse{
		ID: token.ID, Name: token.Name, Role: api.Role(token.Role), AccessRestrictedTo: []api.TokenTarget{},
		CreatedAt: token.CreatedAt, ExpiresAt: token.ExpiresAt, Token: value,
	}, nil
}

func (h handlers) DeleteToken(ctx context.Context, request api.DeleteTokenRequestObject) (api.DeleteTokenResponseObject, error) {
	if err := h.tokens.Delete(ctx, callOf(ctx).who, request.ID); err != nil {
		return nil, err
	}

	return api.DeleteToken204Response{}, nil
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}

	return &t
}
