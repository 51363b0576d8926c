package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

const (
	maxTotals   = 100 // different names of total rows in one dataset
	maxSearched = 5   // datasets whose rows are searched for one question
)

// findTotals searches datasets for total rows that are not in the value index yet, and reports whether it found any. Without this search, a
// question right after a load would count total rows, and the same question would have another answer later.
func (p *interpreter) findTotals(ctx context.Context, datasets []query.About, isWanted func(name string) bool) (isNew bool, err error) {
	searched := 0

	for _, d := range datasets {
		name := nameOf(p.inquiry.question, d.Item)
		if searched == maxSearched || !isWanted(name) || d.RowCount == 0 || d.Profile != nil && d.Profile.Snapshot == d.SnapshotID {
			continue
		}

		searched++

		found, err := p.totalsOf(ctx, name, d)
		if err != nil {
			return false, err
		}

		for _, one := range found {
			if !slices.ContainsFunc(p.totals, func(m planner.Match) bool { return m.Dataset == name && m.Column == one.Column && m.Value == one.Value }) {
				p.totals, isNew = append(p.totals, one), true
			}
		}
	}

	return isNew, nil
}

// aggregates reports whether a plan aggregates the rows of a dataset.
func aggregates(plan planner.Plan, dataset string) bool {
	return slices.ContainsFunc(plan.Candidates, func(c planner.Candidate) bool {
		return slices.ContainsFunc(c.Form.Measures, func(m form.Measure) bool { return cmp.Or(m.Dataset, c.Form.Dataset) == dataset })
	})
}

// totalsOf reads the names of the total rows of a dataset.
func (p *interpreter) totalsOf(ctx context.Context, name string, d query.About) (found []planner.Match, err error) {
	columns := make([]form.ColumnInfo, min(len(d.Columns), maxColumns))
	for i := range columns {
		columns[i] = form.ColumnInfo{Name: d.Columns[i].Name, Type: d.Columns[i].Type}
	}

	text := form.FindTotals(name, columns)
	if text == "" {
		return nil, nil
	}

	result, err := p.inquiry.execute(ctx, statement{text: text, isAside: true})
	if err != nil {
		return nil, err
	}
	defer result.Close()

	rows, _, err := result.Look(maxTotals)

	for _, row := range rows {
		var one struct {
			Column string `json:"found_in"`
			Value  string `json:"found"`
		}

		if err := json.Unmarshal(row, &one); err != nil {
			return nil, err
		}

		found = append(found, planner.Match{Dataset: name, Column: one.Column, Value: one.Value})
	}

	return found, err
}
