package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

// readReport reads an earlier report. It returns nil if name is empty.
func readReport(name string) (*report, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}

	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	if r.Total == nil || r.LeftOut == nil {
		return nil, fmt.Errorf("%s is not a report", name)
	}

	return r, nil
}

// printChanges prints the differences from an earlier report: the figures of each class, and the questions if both
// reports contain them.
func (r *report) printChanges(to io.Writer, earlier *report) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)

	fmt.Fprintf(table, "since %s (%s %s %s)\n", earlier.At.Format("2006-01-02 15:04"), earlier.Suite, earlier.Split, earlier.Model)

	changes := 0
	change := func(name string, before, after *tally) {
		if before == nil || after == nil || (before.precision() == after.precision() && before.accuracy() == after.accuracy() && before.refused() == after.refused()) {
			return
		}

		changes++

		fmt.Fprintf(table, "%s\taccuracy %s -> %s\tprecision %s -> %s\trefused-right %s -> %s\n", name,
			before.accuracy(), after.accuracy(), before.precision(), after.precision(), before.refused(), after.refused())
	}

	change("all", earlier.Total, r.Total)

	for _, class := range slices.Sorted(maps.Keys(r.Classes)) {
		change(class, earlier.Classes[class], r.Classes[class])
	}

	before := map[string]verdict{}
	for _, q := range earlier.Questions {
		before[q.ID] = q.Verdict
	}

	for _, q := range r.Questions {
		if was, known := before[q.ID]; known && was != q.Verdict {
			changes++

			fmt.Fprintf(table, "%s\t%s -> %s\t%s\n", q.ID, was, q.Verdict, q.Question)
		}
	}

	if changes == 0 {
		fmt.Fprintln(table, "nothing changed")
	}

	return table.Flush()
}
