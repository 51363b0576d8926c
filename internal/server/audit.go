package server

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
)

// ListAudit returns the audit entries of the caller's account.
func (h handlers) ListAudit(ctx context.Context, request api.ListAuditRequestObject) (api.ListAuditResponseObject, error) {
	who := callOf(ctx).who
	if !who.Administers(who.Account) {
		return nil, fault.New(fault.Forbidden, "This requires an unrestricted token with the role owner.")
	}

	after, err := cursorMoment(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	params := request.Params
	if params.Dataset != nil && params.Namespace == nil {
		return nil, fault.Invalid("dataset", "needs namespace; add the namespace of the dataset")
	}

	filter := audit.Filter{
		Namespace: value(params.Namespace), Dataset: value(params.Dataset), Changes: params.Reads != nil && !*params.Reads,
	}

	list, next, err := h.audit.List(ctx, who.Account, filter, after, pageLimit(params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListAudit200JSONResponse{Data: make([]api.AuditEntry, 0, len(list)), NextCursor: nextMoment(ctx, next)}
	for _, entry := range list {
		page.Data = append(page.Data, auditEntry(entry))
	}

	return page, nil
}

func auditEntry(e audit.Entry) api.AuditEntry {
	shown := api.AuditEntry{
		ID: e.ID, At: e.At, Username: e.Actor, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Address: e.Address, RequestID: e.RequestID,
		Target: api.AuditTarget{Kind: api.AuditTargetKind(e.Target.Kind)},
	}

	// Older audit entries of statements that read no dataset have no target.
	if id, err := uuid.Parse(e.Target.ID); err == nil {
		shown.Target.ID = id
	} else {
		shown.Target.Kind, shown.Target.ID = api.AuditTargetKindAccount, e.Account
	}

	if e.Token != uuid.Nil {
		shown.TokenID = &e.Token
	}

	if e.Target.Namespace != "" {
		shown.Target.Namespace = &e.Target.Namespace
	}

	if e.Target.Dataset != "" {
		shown.Target.Dataset = &e.Target.Dataset
	}

	return shown
}
