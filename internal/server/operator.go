package server

import (
	"context"
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/build"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// Queue is the backlog of a queue of jobs.
type Queue struct {
	Name    string
	Waiting int64
	Oldest  time.Duration // how long the oldest of them has waited
}

func (h handlers) GetHealth(ctx context.Context, _ api.GetHealthRequestObject) (api.GetHealthResponseObject, error) {
	health := api.Health{Version: build.Read().Version, Checks: []api.HealthCheck{}, Queues: []api.Queue{}}

	for _, check := range h.ready(ctx) {
		one := api.HealthCheck{Name: check.Name, Ok: check.OK}
		if check.Problem != "" {
			one.Problem = &check.Problem
		}

		health.Checks = append(health.Checks, one)
	}

	queues, err := h.queues(ctx)

	for _, queue := range queues {
		health.Queues = append(health.Queues, api.Queue{Name: queue.Name, Waiting: queue.Waiting, OldestSeconds: queue.Oldest.Seconds()})
	}

	return api.GetHealth200JSONResponse(health), err
}

func (h handlers) ListUsers(ctx context.Context, request api.ListUsersRequestObject) (api.ListUsersResponseObject, error) {
	after, err := cursorText(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	most := pageLimit(request.Params.Limit)

	accounts, err := h.accounts.List(ctx, after, most)
	if err != nil {
		return nil, err
	}

	page := api.ListUsers200JSONResponse{Data: make([]api.User, 0, len(accounts))}

	for _, a := range accounts {
		page.Data = append(page.Data, api.User{
			ID: a.ID, Username: a.Username, Name: &a.Name, Email: &a.Email, CreatedAt: a.CreatedAt, SeenAt: a.SeenAt, Disabled: a.Disabled,
		})
	}

	if len(accounts) == most {
		page.NextCursor = nextText(ctx, accounts[most-1].Username)
	}

	return page, nil
}

func (h handlers) UpdateUser(ctx context.Context, request api.UpdateUserRequestObject) (api.UpdateUserResponseObject, error) {
	who := callOf(ctx).who
	name := who.NameOf(request.Username)
	change := h.accounts.Enable

	if request.Body.Disabled {
		if name == who.Username {
			return nil, fault.New(fault.Conflict, "You cannot disable yourself. Ask another operator.")
		}

		change = h.accounts.Disable
	}

	return api.UpdateUser204Response{}, change(ctx, who, name)
}

func (h handlers) GetUsageOf(ctx context.Context, request api.GetUsageOfRequestObject) (api.GetUsageOfResponseObject, error) {
	usage, err := h.catalog.UsageOf(ctx, callOf(ctx).who.NameOf(request.Username))
	if err != nil {
		return nil, err
	}

	return api.GetUsageOf200JSONResponse(showUsage(usage)), nil
}

func (h handlers) ListLimits(ctx context.Context, request api.ListLimitsRequestObject) (api.ListLimitsResponseObject, error) {
	position, err := cursorText(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	var after *catalog.Limit

	if user, kind, found := strings.Cut(position, "\n"); found {
		after = &catalog.Limit{Of: catalog.LimitOf{User: user}, Kind: catalog.Kind(kind)}
	}

	limits, next, err := h.catalog.Limits(ctx, after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListLimits200JSONResponse{Data: make([]api.UserLimit, 0, len(limits))}
	for _, l := range limits {
		page.Data = append(page.Data, showLimit(l))
	}

	if next != nil {
		page.NextCursor = nextText(ctx, next.Of.User+"\n"+string(next.Kind))
	}

	return page, nil
}

func (h handlers) SetLimit(ctx context.Context, request api.SetLimitRequestObject) (api.SetLimitResponseObject, error) {
	who, body := callOf(ctx).who, request.Body

	of, err := forWhom(ctx, body.User, body.Group)
	if err != nil {
		return nil, err
	}

	set := catalog.Limit{Of: of, Kind: catalog.Kind(body.Kind), Amount: catalog.Unlimited}
	if body.Amount != nil {
		set.Amount = *body.Amount
	}

	if err := h.catalog.SetLimit(ctx, who, set); err != nil {
		return nil, err
	}

	return api.SetLimit200JSONResponse(showLimit(set)), nil
}

func (h handlers) UnsetLimit(ctx context.Context, request api.UnsetLimitRequestObject) (api.UnsetLimitResponseObject, error) {
	of, err := forWhom(ctx, request.Params.User, request.Params.Group)
	if err != nil {
		return nil, err
	}

	return api.UnsetLimit204Response{}, h.catalog.UnsetLimit(ctx, callOf(ctx).who, of, catalog.Kind(request.Params.Kind))
}

// forWhom returns for whom a limit is. Without a user and a group it is for everyone.
func forWhom(ctx context.Context, user, group *string) (of catalog.LimitOf, err error) {
	switch {
	case user != nil && group != nil:
		return of, fault.Invalid("group", "cannot be given together with user")
	case user != nil:
		of.User = callOf(ctx).who.NameOf(*user)
	case group != nil:
		of.Group = *group
	default:
		of.Everyone = true
	}

	return of, nil
}

func showLimit(l catalog.Limit) api.UserLimit {
	shown := api.UserLimit{Kind: api.LimitKind(l.Kind)}

	if l.Of.User != "" {
		shown.User = &l.Of.User
	}

	if l.Of.Group != "" {
		shown.Group = &l.Of.Group
	}

	if l.Amount != catalog.Unlimited {
		shown.Amount = &l.Amount
	}

	return shown
}
