package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/query"
)

func (h handlers) LinkQuestion(ctx context.Context, request api.LinkQuestionRequestObject) (api.LinkQuestionResponseObject, error) {
	want := query.LinkRequest{Username: request.Body.Username, Namespace: request.Body.Namespace, Question: request.Body.Question}
	if request.Body.Datasets != nil {
		want.Datasets = *request.Body.Datasets
	}

	found, err := h.query.Link(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	shown := api.LinkResult{Links: make([]api.ValueLink, len(found.Links)), Incomplete: append([]string{}, found.Incomplete...), Truncated: found.Truncated}
	for i, l := range found.Links {
		shown.Links[i] = api.ValueLink{
			Dataset: l.Dataset, Column: l.Column, Value: l.Value, Text: want.Question[l.Start:l.End], Match: api.ValueLinkMatch(l.How), Score: l.Score,
		}
	}

	return api.LinkQuestion200JSONResponse(shown), nil
}
