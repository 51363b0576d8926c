package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/query"
)

func (h handlers) LinkQuestion(ctx context.Context, request api.LinkQuestionRequestObject) (api.LinkQuestionResponseObject, error) {
	want := query.MatchRequest{Username: request.Body.Username, Namespace: request.Body.Namespace, Question: request.Body.Question}
	if request.Body.Datasets != nil {
		want.Datasets = *request.Body.Datasets
	}

	found, err := h.query.Match(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	return api.LinkQuestion200JSONResponse(showMatches(found, want.Question)), nil
}

func showMatches(found query.MatchResult, question string) api.LinkResult {
	shown := api.LinkResult{
		Links: make([]api.ValueLink, len(found.Matches)), Incomplete: append([]string{}, found.Incomplete...),
		Sampled: make([]api.SampledColumn, len(found.Sampled)), Truncated: found.Truncated,
	}

	for i, l := range found.Matches {
		shown.Links[i] = api.ValueLink{
			Dataset: l.Dataset, Column: l.Column, Value: l.Value, Text: question[l.Start:l.End], Match: api.ValueLinkMatch(l.How), Score: l.Score,
		}
	}

	for i, s := range found.Sampled {
		shown.Sampled[i] = api.SampledColumn{Dataset: s.Dataset, Column: s.Column}
	}

	return shown
}
