package mcp

import (
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
)

const (
	maxCheckedText = 100_000 // characters; the same as in the contract of the REST API
	maxCheckedRuns = 5
)

type checkedText struct {
	Verified   int            `json:"verified"`
	Unverified int            `json:"unverified"`
	Claims     []checkedClaim `json:"claims"`
	Hint       string         `json:"hint,omitempty"`
}

// checkedClaim is a claim with its place in the text, counted in characters.
type checkedClaim struct {
	Claim       string        `json:"claim"`
	Start       int           `json:"start"`
	End         int           `json:"end"`
	Verified    bool          `json:"verified"`
	Reason      string        `json:"reason,omitempty"`
	Calculation string        `json:"calculation,omitempty"`
	Cells       []checkedCell `json:"cells,omitempty"`
}

type checkedCell struct {
	Step   int    `json:"step"`
	Row    *int64 `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
}

// checkText checks the figures of a text. Claims that are not confirmed come first, so that none of them is cut.
func (s *Server) checkText(call *invocation) (any, error) {
	text, sql, in := call.args.text("text", maxCheckedText), call.args.text("sql", maxStatement), call.args.namespace()
	want := run.Check{Text: text}

	for _, name := range call.args.list("runIds") {
		id, err := uuid.Parse(name)
		if err != nil {
			id = uuid.Nil // names nothing
		}

		want.Runs = append(want.Runs, id)
	}

	if len(want.Runs) > maxCheckedRuns {
		call.args.refuse("runIds", fmt.Sprintf("may have at most %d ids", maxCheckedRuns))
	}

	if sql != "" {
		want.Statements = []query.Statement{{Username: in.Username, Namespace: in.Namespace, Text: sql, Form: query.Rows}}
	}

	if len(want.Runs) == 0 && sql == "" {
		call.args.refuse("runIds", "or sql is required: what the text is based on")
	}

	if err := call.args.check(); err != nil {
		return nil, err
	}

	checked, err := s.Runs.Check(call, call.who, s.Query, want)
	if err != nil {
		return nil, absent(err, "You have no completed run with one of these ids.")
	}

	return showChecked(checked), nil
}

func showChecked(checked run.Checked) checkedText {
	shown, left := checkedText{Claims: []checkedClaim{}}, newBudget()

	for _, isVerified := range []bool{false, true} {
		for _, c := range checked.Claims {
			if c.Verified != isVerified {
				continue
			}

			if isVerified {
				shown.Verified++
			} else {
				shown.Unverified++
			}

			one := checkedClaim{Claim: clip(c.Text, maxText), Start: c.Start, End: c.End, Verified: c.Verified, Reason: clip(c.Reason, maxText), Calculation: clip(c.Calculation, maxText)}
			for _, from := range c.Sources[:min(len(c.Sources), shownLists)] {
				one.Cells = append(one.Cells, checkedCell{from.Step, from.Row, clip(from.Column, maxText)})
			}

			if !left.take(one) {
				shown.Hint = "Not all claims are shown. Check the text in parts."

				continue
			}

			shown.Claims = append(shown.Claims, one)
		}
	}

	return shown
}
