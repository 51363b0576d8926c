package main

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) datasetSemantics() *cobra.Command {
	var (
		row, file              string
		roles, units, synonyms map[string]string
	)

	command := p.onDataset("semantics DATASET", "Show or say what rows and columns mean", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if file != "" {
			return p.replaceSemantics(ctx, client, at, file)
		}

		response, err := client.GetSemantics(ctx, at.owner, at.namespace, at.dataset) //nolint:bodyclose // api.Read closes it

		found, err := api.Read[api.Semantics](response, err)
		if err != nil || row == "" && len(roles) == 0 && len(units) == 0 && len(synonyms) == 0 {
			return orShow(err, func() error { return p.showSemantics(found) })
		}

		change := confirmed(found)
		if row != "" {
			change.Row = &row
		}

		for column := range roles {
			one := columnChange(change, found, column)
			one.Role = api.ColumnRole(roles[column])
			(*change.Columns)[column] = one
		}

		for column := range units {
			one := columnChange(change, found, column)
			one.Unit = new(units[column])
			(*change.Columns)[column] = one
		}

		for column := range synonyms {
			one := columnChange(change, found, column)
			list := []string{synonyms[column]}

			if one.Synonyms != nil {
				list = append(slices.Clone(*one.Synonyms), list...)
			}

			one.Synonyms = &list
			(*change.Columns)[column] = one
		}

		saved, err := api.Read[api.Semantics](client.PutSemantics(ctx, at.owner, at.namespace, at.dataset, &api.PutSemanticsParams{IfMatch: new(response.Header.Get("ETag"))}, change))

		return orShow(err, func() error { return p.showSemantics(saved) })
	})
	command.Long = `Show or say what a dataset means: what one row is, which role each column has in figures, which datasets belong together, which
figures have a name. Without a flag, show it. Entries that Quern drafted from the values are marked as drafted.

To change joins and measures, write everything to a file (--output json), edit the file, and send it with --file. Remove
"source" from an entry that you change.`
	command.Flags().StringVar(&row, "row", "", "what one row is")
	command.Flags().StringToStringVar(&roles, "role", nil, "role of a column, as NAME=ROLE; can be repeated")
	command.Flags().StringToStringVar(&units, "unit", nil, "unit of a column, as NAME=UNIT; can be repeated")
	command.Flags().StringToStringVar(&synonyms, "synonym", nil, "another word for a column, as NAME=WORDS; can be repeated")
	command.Flags().StringVar(&file, "file", "", "file with everything that is said, as JSON; - for standard input")
	command.MarkFlagsMutuallyExclusive("file", "row")
	command.MarkFlagsMutuallyExclusive("file", "role")
	command.MarkFlagsMutuallyExclusive("file", "unit")
	command.MarkFlagsMutuallyExclusive("file", "synonym")

	return command
}

func orShow(err error, show func() error) error {
	if err != nil {
		return err
	}

	return show()
}

// replaceSemantics sends the content of a file. The service checks it.
func (p *program) replaceSemantics(ctx context.Context, client *api.Client, at name, file string) error {
	content, err := contentOf(file)
	if err != nil {
		return err
	}

	saved, err := api.Read[api.Semantics](client.PutSemanticsWithBody(ctx, at.owner, at.namespace, at.dataset, nil, "application/json", bytes.NewReader(content)))

	return orShow(err, func() error { return p.showSemantics(saved) })
}

// confirmed returns what people said. Drafts are left out, so that they stay drafts.
func confirmed(found api.Semantics) api.SemanticsChange {
	change := api.SemanticsChange{Columns: &map[string]api.ColumnSemanticsChange{}, Joins: &[]api.JoinSemanticsChange{}, Measures: &[]api.MeasureChange{}}
	if found.RowSource == api.SemanticsSourceConfirmed {
		change.Row = &found.Row
	}

	for column, c := range found.Columns {
		if c.Source == api.SemanticsSourceConfirmed {
			(*change.Columns)[column] = columnChange(change, found, column)
		}
	}

	for _, j := range found.Joins {
		if j.Source != api.SuggestionSourceDrafted {
			*change.Joins = append(*change.Joins, api.JoinSemanticsChange{Columns: j.Columns, To: j.To, Keys: j.Keys, Source: &j.Source})
		}
	}

	for _, m := range found.Measures {
		if m.Source != api.SuggestionSourceDrafted {
			*change.Measures = append(*change.Measures, api.MeasureChange{
				Name: m.Name, Synonyms: &m.Synonyms, Function: m.Function, Expression: &m.Expression, Unit: m.Unit, Source: &m.Source,
			})
		}
	}

	return change
}

// columnChange returns what is said about a column: in the change, otherwise as it was found. The service refuses a column
// that does not exist.
func columnChange(change api.SemanticsChange, found api.Semantics, column string) api.ColumnSemanticsChange {
	if one, ok := (*change.Columns)[column]; ok {
		return one
	}

	c, ok := found.Columns[column]
	if !ok {
		return api.ColumnSemanticsChange{Role: api.ColumnRoleUnknown}
	}

	return api.ColumnSemanticsChange{Role: c.Role, Unit: c.Unit, Synonyms: &c.Synonyms, NotForFigures: &c.NotForFigures}
}

func (p *program) showSemantics(found api.Semantics) error {
	names := slices.Sorted(maps.Keys(found.Columns))
	columns := []column[string]{
		{"column", func(name string) any { return name }},
		{"role", func(name string) any { return string(found.Columns[name].Role) }},
		{"unit", func(name string) any { return found.Columns[name].Unit }},
		{"synonyms", func(name string) any { return strings.Join(found.Columns[name].Synonyms, ", ") }},
		{"source", func(name string) any { return string(found.Columns[name].Source) }},
	}

	if p.format == "csv" {
		heads, rows := cells(names, columns)

		return p.csv(heads, rows)
	}

	return one(p, found, func() {
		if found.Row != "" {
			p.facts(fact{"row", found.Row + " (" + string(found.RowSource) + ")"})
			p.out.printf("\n")
		}

		if len(names) > 0 {
			p.table(cells(names, columns))
		}

		if len(found.Joins) > 0 {
			p.out.printf("\n")
			p.table(cells(found.Joins, []column[api.JoinSemantics]{
				{"join", func(j api.JoinSemantics) any { return strings.Join(j.Columns, ", ") }},
				{"with", func(j api.JoinSemantics) any { return j.To }},
				{"key", func(j api.JoinSemantics) any { return strings.Join(j.Keys, ", ") }},
				{"source", func(j api.JoinSemantics) any { return string(j.Source) }},
			}))
		}

		if len(found.Measures) > 0 {
			p.out.printf("\n")
			p.table(cells(found.Measures, []column[api.Measure]{
				{"measure", func(m api.Measure) any { return m.Name }},
				{"function", func(m api.Measure) any { return string(m.Function) }},
				{"of", func(m api.Measure) any { return m.Expression }},
				{"unit", func(m api.Measure) any { return m.Unit }},
				{"source", func(m api.Measure) any { return string(m.Source) }},
			}))
		}
	})
}
