// Package grounding checks that an answer agrees with the rows. Every number, percentage, amount, date and quoted value
// of an answer is a claim. A claim is verified only if it is a cell, a count, or a calculation over cells that the
// writer has stated.
//
// A writer puts a marker after each figure: [[0:2:orders]] is step 0, row 2, column orders; [[0:count]] is the number
// of rows of step 0; [[= 0:2:orders / sum(0:*:orders)]] is a calculation with sum, avg, min, max, count, + - * / and
// parentheses. Names of columns with other characters are quoted: 0:2:"net sales". A figure without a marker is located
// in the rows, and is verified only if the cell is certain. Numbers of the question and single years are not claims.
//
// Besides the value, the sentence around it must agree: the row that it names, the column, the unit, the whole of a
// percentage. The package returns no errors: a claim that cannot be understood is not verified and has a reason for the
// writer.
//
// Answers and cells are not trusted: the work is linear in their size apart from small factors, and the text of a cell
// is not treated as a marker.
package grounding

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
)

// Step is the data of an answer: the rows that the writer saw, in order, numbered from 0.
type Step struct {
	Index    int
	Columns  []string
	Rows     []json.RawMessage // objects; "__metadata" is ignored
	RowCount int64
	Complete bool // Rows contains all rows of the step
}

// Report is the result of checking an answer.
type Report struct {
	Text   string // answer without markers
	Claims []Claim
}

// Claim is a part of the answer that must be true.
type Claim struct {
	Text        string // as in Report.Text
	At          int    // position in Report.Text, in bytes
	Verified    bool
	Reason      string // why the claim is not verified, as text for the model that wrote it
	Sources     []Source
	Calculation string
}

// Source is the origin of a claim.
type Source struct {
	Step   int
	Row    *int64 // from 0; nil means the whole step or column
	Column string
}

// Check finds the claims of an answer and verifies each one.
func Check(answer, question string, steps []Step) Report {
	report, _ := CheckWithin(context.Background(), answer, question, steps, math.MaxInt) // without limits it does not fail

	return report
}

// ErrClaims reports that a text has more claims than the caller wants to check.
var ErrClaims = errors.New("the text has too many claims")

// CheckWithin is Check for texts that anybody wrote. It ends with the context, and fails with ErrClaims for a text that has
// more than most claims.
func CheckWithin(ctx context.Context, answer, question string, steps []Step, most int) (Report, error) {
	rows := read(steps)
	text, markers := strip(answer, rows)
	c := newChecker(text, question, markers, rows)
	c.attach(markers)

	report := Report{Text: text}

	for _, f := range c.figures {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}

		if len(f.markers) > 0 || c.claims(f) {
			report.Claims = append(report.Claims, c.judge(f))
		}

		if len(report.Claims) > most {
			return Report{}, ErrClaims
		}
	}

	for _, r := range c.relations {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}

		if claim, is := c.judgeRelation(r); is {
			report.Claims = append(report.Claims, claim)
		}

		if len(report.Claims) > most {
			return Report{}, ErrClaims
		}
	}

	slices.SortStableFunc(report.Claims, func(a, b Claim) int { return a.At - b.At })

	return report, nil
}

// judge verifies a figure.
func (c *checker) judge(f *figure) Claim {
	claim := Claim{Text: c.text[f.from:f.to], At: f.from}

	if len(f.markers) == 0 {
		found, reason := c.locate(f)
		claim.Verified, claim.Reason, claim.Sources, claim.Calculation = reason == "", reason, found.sources(), found.calculation

		return claim
	}

	claim.Verified = true

	for _, m := range f.markers {
		claim.Sources = append(claim.Sources, m.result.sources()...)
		claim.Calculation = m.result.calculation

		if reason := c.holds(f, m.result); reason != "" && claim.Verified {
			claim.Verified, claim.Reason = false, reason
		}
	}

	return claim
}
