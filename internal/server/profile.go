package server

import (
	"context"
	"encoding/json"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/query"
)

func (h handlers) GetProfile(ctx context.Context, request api.GetProfileRequestObject) (api.GetProfileResponseObject, error) {
	found, err := h.query.Profile(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	return api.GetProfile200JSONResponse(showProfile(found)), nil
}

func (h handlers) DraftInferDefinition(ctx context.Context, request api.DraftInferDefinitionRequestObject) (api.DraftInferDefinitionResponseObject, error) {
	drafted, err := h.query.Draft(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	return api.DraftInferDefinition200JSONResponse(definition(drafted)), nil
}

func showProfile(found query.Profile) api.Profile {
	shown := api.Profile{
		SnapshotID: found.Snapshot, ComputedAt: found.ComputedAt, RowCount: found.Rows,
		Columns: make([]api.ColumnProfile, len(found.Columns)), CandidateKeys: found.Keys, Joins: make([]api.ProbableJoin, len(found.Joins)),
	}

	for i, c := range found.Columns {
		shown.Columns[i] = showColumnProfile(c)
	}

	for i, j := range found.Joins {
		shown.Joins[i] = api.ProbableJoin{
			Column: j.Column, Username: j.With.Owner, Namespace: j.With.Namespace, Dataset: j.With.Name, OtherColumn: j.To, Share: j.Share,
		}
	}

	return shown
}

func showColumnProfile(c query.ColumnProfile) api.ColumnProfile {
	shown := api.ColumnProfile{
		Name: c.Name, Type: c.Type, Nulls: c.Nulls, Distinct: c.Distinct, DistinctExact: c.DistinctExact, Shortest: c.Shortest, Longest: c.Longest,
		AverageLength: c.AverageLength, Mean: c.Mean, TopValues: make([]api.ValueCount, len(c.TopValues)), Examples: showValues(c.Examples),
	}

	if c.Min != nil {
		shown.Min, shown.Max = c.Min, c.Max
	}

	if len(c.Quartiles) > 0 {
		shown.Quartiles = new(showValues(c.Quartiles))
	}

	if len(c.Bins) > 0 {
		bins := make([]api.Bin, len(c.Bins))
		for i, b := range c.Bins {
			bins[i] = api.Bin{From: b.From, To: b.To, Count: b.Count}
		}

		shown.Bins = &bins
	}

	if len(c.Shapes) > 0 {
		shapes := make([]api.ValueShape, len(c.Shapes))
		for i, s := range c.Shapes {
			shapes[i] = api.ValueShape{Shape: s.Shape, Share: s.Share}
		}

		shown.Shape, shown.Shapes = &shapes[0].Shape, &shapes
	}

	for i, top := range c.TopValues {
		shown.TopValues[i] = api.ValueCount{Value: top.Value, Count: top.Count}
	}

	return shown
}

// showValues keeps the JSON text of the values.
func showValues(values []json.RawMessage) []*any {
	list := make([]*any, len(values))
	for i, value := range values {
		list[i] = new(any(value))
	}

	return list
}
