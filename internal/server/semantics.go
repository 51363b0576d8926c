package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
)

func (h handlers) GetSemantics(ctx context.Context, request api.GetSemanticsRequestObject) (api.GetSemanticsResponseObject, error) {
	found, err := h.query.Semantics(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	return api.GetSemantics200JSONResponse{
		Body: showSemantics(found), Headers: api.GetSemantics200ResponseHeaders{ETag: new(etag(found.Revision))},
	}, nil
}

func (h handlers) PutSemantics(ctx context.Context, request api.PutSemanticsRequestObject) (api.PutSemanticsResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	saved, err := h.query.PutSemantics(ctx, callOf(ctx).who, at, readSemantics(*request.Body), ifMatch(request.Params.IfMatch))
	if err != nil {
		return nil, err
	}

	return api.PutSemantics200JSONResponse{
		Body: showSemantics(saved), Headers: api.PutSemantics200ResponseHeaders{ETag: new(etag(saved.Revision))},
	}, nil
}

// GetChoices returns which meanings of words the caller chose, and for editors what people chose.
func (h handlers) GetChoices(ctx context.Context, request api.GetChoicesRequestObject) (api.GetChoicesResponseObject, error) {
	own, proposed, err := h.catalog.Choices(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	shown := api.GetChoices200JSONResponse{Chosen: make([]api.ChosenMeaning, len(own))}
	for i, one := range own {
		shown.Chosen[i] = api.ChosenMeaning{Words: one.Said, As: one.Kind, Column: optionalText(one.Column), ChosenAt: one.At}
	}

	if proposed != nil {
		list := make([]api.ProposedMeaning, len(proposed))
		for i, one := range proposed {
			list[i] = api.ProposedMeaning{Words: one.Said, Column: one.Column, People: one.People}
		}

		shown.Proposed = &list
	}

	return shown, nil
}

func (h handlers) DeleteChoices(ctx context.Context, request api.DeleteChoicesRequestObject) (api.DeleteChoicesResponseObject, error) {
	return api.DeleteChoices204Response{}, h.catalog.ForgetChoices(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
}

func showSemantics(s query.Semantics) api.Semantics {
	shown := api.Semantics{
		Row: s.Row.Value, RowSource: api.SemanticsSource(s.Row.Origin), Columns: make(map[string]api.ColumnSemantics, len(s.Columns)),
		Joins: make([]api.JoinSemantics, len(s.Joins)), Measures: make([]api.Measure, len(s.Measures)),
	}

	for name, c := range s.Columns {
		shown.Columns[name] = api.ColumnSemantics{
			Role: api.ColumnRole(c.Value.Role), Unit: optionalText(c.Value.Unit), Synonyms: append([]string{}, c.Value.Synonyms...),
			NotForFigures: c.Value.NotForFigures, Source: api.SemanticsSource(c.Origin),
		}
	}

	for i, j := range s.Joins {
		shown.Joins[i] = api.JoinSemantics{Columns: j.Value.Columns, To: j.Value.To, Keys: j.Value.Keys, Source: api.SuggestionSource(j.Origin)}
	}

	for i, m := range s.Measures {
		shown.Measures[i] = api.Measure{
			Name: m.Value.Name, Synonyms: append([]string{}, m.Value.Synonyms...), Function: api.MeasureFunction(m.Value.Function),
			Expression: m.Value.Expression, Unit: optionalText(m.Value.Unit), Source: api.SuggestionSource(m.Origin),
		}
	}

	return shown
}

func readSemantics(body api.SemanticsChange) query.Semantics {
	want := query.Semantics{
		Row:     query.Entry[string]{Value: value(body.Row), Origin: query.Origin(value(body.RowSource))},
		Columns: map[string]query.Entry[meaning.Column]{},
	}

	for name, c := range value(body.Columns) {
		want.Columns[name] = query.Entry[meaning.Column]{Origin: query.Origin(value(c.Source)), Value: meaning.Column{
			Role: meaning.Role(c.Role), Unit: value(c.Unit), Synonyms: value(c.Synonyms), NotForFigures: value(c.NotForFigures),
		}}
	}

	for _, j := range value(body.Joins) {
		want.Joins = append(want.Joins, query.Entry[meaning.Join]{
			Origin: query.Origin(value(j.Source)), Value: meaning.Join{Columns: j.Columns, To: j.To, Keys: j.Keys},
		})
	}

	for _, m := range value(body.Measures) {
		want.Measures = append(want.Measures, query.Entry[meaning.Measure]{Origin: query.Origin(value(m.Source)), Value: meaning.Measure{
			Name: m.Name, Synonyms: value(m.Synonyms), Function: string(m.Function), Expression: value(m.Expression), Unit: value(m.Unit),
		}})
	}

	return want
}
