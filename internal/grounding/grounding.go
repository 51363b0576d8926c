// Package grounding checks that an answer says what the rows say. Every number, percentage, amount, date and quoted value of an
// answer is a claim, and holds only if it is a cell, a count, or a calculation over cells that the writer has stated.
//
// A writer puts a marker behind each figure: [[0:2:orders]] is step 0, row 2, column orders; [[0:count]] the number of rows of step 0;
// [[= 0:2:orders / sum(0:*:orders)]] a calculation with sum, avg, min, max, count, + - * / and parentheses. Columns with other
// characters are quoted: 0:2:"net sales". A figure without a marker is looked for in the rows, and holds only if there is no doubt which
// cell is meant. Numbers of the question and bare years are no claims.
//
// Besides the value, what the sentence says around it must agree: the row that it names, the column, the unit, the whole of a
// percentage. Nothing here is an error: what cannot be understood is a claim that does not hold, with a reason for the writer.
//
// Answers and cells are hostile: the work is linear in their size but for small factors, and a cell cannot be taken for a marker.
package grounding

import (
	"encoding/json"
	"slices"
)

// Step is what the answer may be based on: the rows that the writer saw, in order, numbered from 0.
type Step struct {
	Index    int
	Columns  []string
	Rows     []json.RawMessage // objects; "__metadata" is ignored
	RowCount int64
	Complete bool // Rows are all rows
}

// Report is what became of an answer.
type Report struct {
	Text   string // the answer without markers
	Claims []Claim
}

// Claim is a piece of the answer that must be true.
type Claim struct {
	Text        string // as it stands in Report.Text
	At          int    // where, in bytes
	Verified    bool
	Reason      string // why not, in words for the model that wrote it
	Sources     []Source
	Calculation string
}

// Source is where a claim comes from.
type Source struct {
	Step   int
	Row    *int64 // from 0; nil: the whole step or column
	Column string
}

// Check finds the claims of an answer and says of each whether it holds.
func Check(answer, question string, steps []Step) Report {
	rows := read(steps)
	text, markers := strip(answer, rows)
	c := newChecker(text, question, markers, rows)
	c.attach(markers)

	report := Report{Text: text}

	for _, f := range c.figures {
		if len(f.markers) > 0 || c.claims(f) {
			report.Claims = append(report.Claims, c.judge(f))
		}
	}

	slices.SortStableFunc(report.Claims, func(a, b Claim) int { return a.At - b.At })

	return report
}

// judge says whether a figure holds.
func (c *checker) judge(f *figure) Claim {
	claim := Claim{Text: c.text[f.from:f.to], At: f.from}

	if len(f.markers) == 0 {
		found, reason := c.trace(f)
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
