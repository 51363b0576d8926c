package server

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
)

// CheckText handles POST /query/check.
func (h handlers) CheckText(ctx context.Context, request api.CheckTextRequestObject) (api.CheckTextResponseObject, error) {
	want := run.Check{Text: request.Body.Text, Question: value(request.Body.Question), Runs: value(request.Body.Runs)}

	for i, body := range value(request.Body.Statements) {
		one, err := statement(body, query.Rows)
		if err != nil {
			return nil, err
		}

		if one.Explain {
			return nil, fault.Invalid(fmt.Sprintf("statements.%d.explain", i), "cannot be set: a plan has no rows to check")
		}

		want.Statements = append(want.Statements, one)
	}

	if len(want.Runs)+len(want.Statements) == 0 {
		return nil, fault.Invalid("statements", "is required if runs is empty: the text is checked against their rows")
	}

	checked, err := h.runs.Check(ctx, callOf(ctx).who, h.query, want)
	if err != nil {
		return nil, err
	}

	return api.CheckText200JSONResponse(showChecked(checked)), nil
}

func showChecked(checked run.Checked) api.CheckResult {
	shown := api.CheckResult{Text: checked.Text, Claims: make([]api.CheckedClaim, len(checked.Claims)), Steps: make([]api.CheckedStep, len(checked.Steps))}

	for i, c := range checked.Claims {
		one := api.CheckedClaim{Claim: c.Text, Start: api.TextPosition(c.Start), End: api.TextPosition(c.End), Verified: c.Verified, Sources: []api.ClaimSource{}} //nolint:gosec // a text is short

		if c.Verified {
			shown.Verified++
		} else {
			shown.Unverified++
			one.Reason = &c.Reason
		}

		if c.Calculation != "" {
			one.Calculation = &c.Calculation
		}

		for _, from := range c.Sources {
			source := api.ClaimSource{Step: int32(from.Step), Row: from.Row} //nolint:gosec // there are few steps
			if from.Column != "" {
				source.Column = &from.Column
			}

			one.Sources = append(one.Sources, source)
		}

		shown.Claims[i] = one
	}

	for i, s := range checked.Steps {
		shown.Steps[i] = api.CheckedStep{Index: int32(i), Query: s.Query, RowCount: s.RowCount, Complete: s.Complete}
		if s.Run != uuid.Nil {
			shown.Steps[i].RunID = &s.Run
		}
	}

	return shown
}
