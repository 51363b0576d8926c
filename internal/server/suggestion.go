package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// defaultSuggestions is the limit in the contract.
const defaultSuggestions = 4

// SuggestQuestions returns questions that are answered without a model.
func (h handlers) SuggestQuestions(ctx context.Context, request api.SuggestQuestionsRequestObject) (api.SuggestQuestionsResponseObject, error) {
	at, err := namespaceFilter(request.Params.Username, request.Params.Namespace)
	if err != nil {
		return nil, err
	}

	want := run.Scope{Limit: defaultSuggestions}
	if request.Params.Limit != nil {
		want.Limit = int(*request.Params.Limit)
	}

	if at != nil {
		want.Username, want.Namespace = at.Username, at.Namespace
	}

	if request.Params.Dataset != nil {
		if at == nil {
			return nil, fault.Invalid("namespace", "is required with dataset")
		}

		want.Dataset = *request.Params.Dataset
	}

	found, err := h.runs.Suggest(ctx, callOf(ctx).who, want)
	list := api.SuggestQuestions200JSONResponse{Data: make([]api.Suggestion, len(found))}

	for i, s := range found {
		list.Data[i] = api.Suggestion{Username: s.Username, Namespace: s.Namespace, Dataset: s.Dataset, Question: s.Question, Interpretation: s.Interpretation}
	}

	return list, err
}
