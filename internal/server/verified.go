package server

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
)

func (h handlers) ListVerifiedQuestions(ctx context.Context, request api.ListVerifiedQuestionsRequestObject) (api.ListVerifiedQuestionsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	who, at := callOf(ctx).who, namespacePath(request.Username, request.Namespace)

	if request.Params.Question != nil {
		return h.answeringQuestion(ctx, at, *request.Params.Question)
	}

	found, next, err := h.verified.List(ctx, who, at, verified.Status(value(request.Params.Status)), after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListVerifiedQuestions200JSONResponse{Data: make([]api.VerifiedQuestion, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showVerified(one)
	}

	return page, nil
}

// answeringQuestion lists the verified question that answers a question of the caller.
func (h handlers) answeringQuestion(ctx context.Context, at catalog.Path, question string) (api.ListVerifiedQuestionsResponseObject, error) {
	match, err := h.verified.Match(ctx, callOf(ctx).who, at, question)
	if err != nil {
		return nil, err
	}

	page := api.ListVerifiedQuestions200JSONResponse{Data: []api.VerifiedQuestion{}}
	if match != nil {
		page.Data = append(page.Data, showVerified(match.Question))
	}

	return page, nil
}

func (h handlers) CreateVerifiedQuestion(ctx context.Context, request api.CreateVerifiedQuestionRequestObject) (api.CreateVerifiedQuestionResponseObject, error) {
	at := namespacePath(request.Username, request.Namespace)

	made, err := h.verified.Create(ctx, callOf(ctx).who, verified.New{
		At: at, Once: once(ctx, request.Params.IdempotencyKey), Content: func(ctx context.Context) (verified.Content, error) { return h.content(ctx, at, *request.Body) },
	})
	if err != nil {
		return nil, err
	}

	return api.CreateVerifiedQuestion201JSONResponse{
		Body: showVerified(made),
		Headers: api.CreateVerifiedQuestion201ResponseHeaders{
			Location: h.address("verified", request.Username, request.Namespace, made.ID.String()), ETag: new(etag(made.Revision)),
		},
	}, nil
}

// content returns what a request wants to keep: a run of the caller, or what the body says.
func (h handlers) content(ctx context.Context, at catalog.Path, body api.NewVerifiedQuestion) (kept verified.Content, err error) {
	if body.RunID != nil {
		if kept, err = h.contentOf(ctx, at, *body.RunID); err != nil {
			return kept, err
		}
	} else if body.Question == nil || body.Query == nil {
		var subs []fault.Sub

		for name, given := range map[string]*string{"question": body.Question, "query": body.Query} {
			if given == nil {
				subs = append(subs, fault.Sub{Code: name, Message: "is required without runId"})
			}
		}

		return kept, fault.InvalidFields(subs...)
	}

	return verified.Change{
		Question: body.Question, Wordings: body.Wordings, Query: body.Query, Parameters: readParameters(body.Parameters), Interpretation: body.Interpretation,
	}.Apply(kept), nil
}

func (h handlers) contentOf(ctx context.Context, at catalog.Path, id uuid.UUID) (kept verified.Content, err error) {
	who := callOf(ctx).who

	found, err := h.runs.Get(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		return kept, fault.Invalid("runId", "is not a run of yours")
	}

	if err != nil {
		return kept, err
	}

	asked := catalog.Path{Username: found.Question.Username, Namespace: found.Question.Namespace}

	switch {
	case found.Status != run.Completed || found.Result == nil || found.Result.Outcome != "answer":
		return kept, fault.Invalid("runId", "is not a run that was completed with an answer")
	case len(found.Result.Steps) != 1:
		return kept, fault.Invalid("runId", "is a run of several statements; only a run of one statement can be kept")
	case !strings.EqualFold(who.NameOf(asked.Username)+"/"+asked.Namespace, who.NameOf(at.Username)+"/"+at.Namespace):
		return kept, fault.Invalid("runId", "is a run about another namespace")
	}

	step := found.Result.Steps[0]
	kept = verified.Content{Question: found.Question.Text, Query: step.Query, Interpretation: found.Result.Interpretation}

	if step.Verified != nil && len(step.Verified.Parameters) > 0 {
		return kept, fault.Invalid("runId", "was answered by a verified question with parameters; change that one instead")
	}

	return kept, nil
}

func (h handlers) GetVerifiedQuestion(ctx context.Context, request api.GetVerifiedQuestionRequestObject) (api.GetVerifiedQuestionResponseObject, error) {
	found, err := h.verified.Get(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.VerifiedID)
	if err != nil {
		return nil, err
	}

	return api.GetVerifiedQuestion200JSONResponse{
		Body: showVerified(found), Headers: api.GetVerifiedQuestion200ResponseHeaders{ETag: new(etag(found.Revision))},
	}, nil
}

func (h handlers) UpdateVerifiedQuestion(ctx context.Context, request api.UpdateVerifiedQuestionRequestObject) (api.UpdateVerifiedQuestionResponseObject, error) {
	body := *request.Body
	if body == (api.VerifiedQuestionChange{}) {
		return nil, fault.Invalid("body", "must have at least one field that is not null")
	}

	saved, err := h.verified.Update(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.VerifiedID, verified.Change{
		Question: body.Question, Wordings: body.Wordings, Query: body.Query, Parameters: readParameters(body.Parameters), Interpretation: body.Interpretation,
	}, ifMatch(request.Params.IfMatch))
	if err != nil {
		return nil, err
	}

	return api.UpdateVerifiedQuestion200JSONResponse{
		Body: showVerified(saved), Headers: api.UpdateVerifiedQuestion200ResponseHeaders{ETag: new(etag(saved.Revision))},
	}, nil
}

func (h handlers) RetireVerifiedQuestion(ctx context.Context, request api.RetireVerifiedQuestionRequestObject) (api.RetireVerifiedQuestionResponseObject, error) {
	if err := h.verified.Retire(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.VerifiedID); err != nil {
		return nil, err
	}

	return api.RetireVerifiedQuestion204Response{}, nil
}

func readParameters(given *[]api.VerifiedParameter) *verified.Parameters {
	if given == nil {
		return nil
	}

	list := verified.Parameters{}
	for _, p := range *given {
		list = append(list, verified.Parameter{Name: p.Name, Type: p.Type, Column: value(p.Column), Period: verified.Period(value(p.Period)), Default: p.Default})
	}

	return &list
}

func showVerified(q verified.Question) api.VerifiedQuestion {
	shown := api.VerifiedQuestion{
		ID: q.ID, Question: q.Question, Wordings: append([]string{}, q.Wordings...), Query: q.Query, Parameters: []api.VerifiedParameter{}, Datasets: []api.VerifiedDataset{},
		Interpretation: optionalText(q.Interpretation), Status: api.VerifiedStatus(q.Status), Reason: optionalText(q.Reason), Author: q.Author,
		VerifiedAt: q.VerifiedAt, CreatedAt: q.CreatedAt,
	}

	if q.Imported {
		shown.Imported = new(true)
	}

	for _, p := range q.Parameters {
		one := api.VerifiedParameter{Name: p.Name, Type: p.Type, Column: optionalText(p.Column), Default: p.Default}
		if p.Period != "" {
			one.Period = new(api.VerifiedPeriod(p.Period))
		}

		shown.Parameters = append(shown.Parameters, one)
	}

	for _, n := range q.Needs {
		one := api.VerifiedDataset{Dataset: n.Dataset, Columns: []api.ResultColumn{}}
		for _, c := range n.Columns {
			one.Columns = append(one.Columns, api.ResultColumn{Name: c.Name, Type: c.Type})
		}

		shown.Datasets = append(shown.Datasets, one)
	}

	return shown
}

func namespacePath(username, namespace string) catalog.Path {
	return catalog.Path{Username: username, Namespace: namespace}
}
