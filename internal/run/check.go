package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/grounding"
	"quern.dev/quern/internal/query"
)

// Limits of a check, because anybody can send any text.
const (
	maxClaims   = 5_000
	checkTime   = 20 * time.Second
	checkedRows = wireRows
)

// Check is a text and what it is based on.
type Check struct {
	Text       string
	Question   string // its numbers are not claims
	Runs       []uuid.UUID
	Statements []query.Statement
}

// Checked is a text whose claims were looked up.
type Checked struct {
	Text   string // without markers
	Claims []CheckedClaim
	Steps  []CheckedStep
}

// CheckedClaim is a claim with its place in the text, counted in Unicode characters.
type CheckedClaim struct {
	grounding.Claim

	Start, End int
}

// CheckedStep is the result of a statement that claims were looked up in.
type CheckedStep struct {
	Run      uuid.UUID // Nil for a statement of the check
	Query    string
	RowCount int64
	Complete bool
}

// Check looks up the claims of a text in the rows of runs and statements, with the rights of the caller. It stores nothing.
//
// Faults: NotFound for a run that the caller may not see, that was not completed or whose rows are withheld; those of
// query.Run; ValidationFailed and LimitExceeded for a text that has too many claims or takes too long.
func (r *Runs) Check(ctx context.Context, who auth.Principal, q *query.Query, want Check) (Checked, error) {
	var (
		checked Checked
		steps   []grounding.Step
	)

	add := func(run uuid.UUID, s agent.Step, cut bool) {
		step := grounding.Step{Index: len(steps), RowCount: s.RowCount, Complete: !cut && int64(len(s.Data)) == s.RowCount}

		for _, c := range s.Columns {
			step.Columns = append(step.Columns, c.Name)
		}

		for _, row := range s.Data {
			step.Rows = append(step.Rows, query.Unmark(row))
		}

		steps = append(steps, step)
		checked.Steps = append(checked.Steps, CheckedStep{Run: run, Query: s.Query, RowCount: s.RowCount, Complete: step.Complete})
	}

	for _, id := range want.Runs {
		found, err := r.Get(ctx, who, id)
		if err != nil {
			return Checked{}, err
		}

		if found.Status != Completed || found.Result.Outcome == agent.Withheld {
			return Checked{}, fault.Absent()
		}

		for _, s := range found.Result.Steps {
			add(id, s, false)
		}
	}

	for i, s := range want.Statements {
		step, cut, err := readStatement(ctx, who, q, s)
		if err != nil {
			return Checked{}, inStatement(err, i, len(want.Statements))
		}

		add(uuid.Nil, step, cut)
	}

	within, stop := context.WithTimeout(ctx, checkTime)
	defer stop()

	report, err := grounding.CheckWithin(within, want.Text, want.Question, steps, maxClaims)

	switch {
	case errors.Is(err, grounding.ErrClaims):
		return Checked{}, fault.Invalid("text", fmt.Sprintf("has more than %d claims; check it in parts", maxClaims))
	case err != nil && ctx.Err() == nil:
		return Checked{}, fault.New(fault.LimitExceeded, "The check took too long. Check the text in parts, or against fewer rows.")
	case err != nil:
		return Checked{}, err
	}

	checked.Text, checked.Claims = report.Text, placed(report)

	return checked, nil
}

// inStatement says which of several statements an error is about.
func inStatement(err error, index, of int) error {
	failed := *fault.From(err)
	if of > 1 {
		failed.Message = fmt.Sprintf("Statement %d: %s", index+1, failed.Message)
	}

	return &failed
}

// readStatement runs a statement and returns its first rows. cut is true if the result itself was truncated.
func readStatement(ctx context.Context, who auth.Principal, q *query.Query, want query.Statement) (step agent.Step, cut bool, err error) {
	result, err := q.Run(ctx, who, want)
	if err != nil {
		return step, false, err
	}
	defer result.Close()

	step = agent.Step{Query: want.Text, Columns: result.Columns, Data: []json.RawMessage{}}

	for size := 0; ; {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return step, false, err
		}

		if size += len(row); size <= wireBytes && len(step.Data) < checkedRows {
			step.Data = append(step.Data, bytes.Clone(row))
		}
	}

	count, by := result.End()
	step.RowCount = count

	return step, by != "", nil
}

// placed returns the claims with their places in characters.
func placed(report grounding.Report) []CheckedClaim {
	claims := make([]CheckedClaim, len(report.Claims))
	done, length := 0, 0

	for i, claim := range report.Claims {
		if claim.At < done { // it lies within the claim before it
			done, length = 0, 0
		}

		length += utf8.RuneCountInString(report.Text[done:claim.At])
		done = claim.At
		claims[i] = CheckedClaim{Claim: claim, Start: length, End: length + utf8.RuneCountInString(claim.Text)}
	}

	return claims
}
