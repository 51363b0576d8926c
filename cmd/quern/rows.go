package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) rowsCommand() *cobra.Command {
	var (
		limit   int
		columns []string
	)

	command := p.onDataset("rows DATASET", "Show the first rows", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		var (
			result   resultRows
			selected = given[string](strings.Join(columns, ","))
			more     bool
		)

		for row, err := range api.Pages(func(cursor *string) ([]api.Row, *string, error) {
			page, err := api.Read[api.RowPage](client.ListRows(ctx, at.owner, at.namespace, at.dataset, &api.ListRowsParams{
				Cursor: cursor, Columns: selected, Limit: new(int32(min(100, max(1, limit-len(result.rows))))),
			}))
			result.columns = page.Columns

			return page.Data, page.NextCursor, err
		}) {
			if err != nil {
				return err
			}

			if more = len(result.rows) == limit; more {
				break
			}

			result.rows = append(result.rows, row)
		}

		if err := p.printRows(result); err != nil {
			return err
		}

		if more && p.format == "table" {
			p.err.printf("%s\n", p.err.style(dim, fmt.Sprintf("The first %d rows. Use --limit for more, or `quern export %s` for all.", limit, at)))
		}

		return nil
	})
	command.Flags().IntVar(&limit, "limit", 20, "maximum number of rows")
	command.Flags().StringSliceVar(&columns, "columns", nil, "show only these columns, separated by commas")
	command.AddCommand(p.rowsDelete(), p.rowsMerge())

	return command
}

// resultRows are rows of the service with the order of their columns.
type resultRows struct {
	columns []api.ResultColumn
	rows    []api.Row
}

// printRows prints the columns of the result, and nothing else of the response.
func (p *program) printRows(result resultRows) error {
	heads := make([]string, len(result.columns))
	for i, column := range result.columns {
		heads[i] = column.Name
	}

	rows := make([][]any, len(result.rows))
	for i, row := range result.rows {
		for _, head := range heads {
			rows[i] = append(rows[i], row[head])
		}
	}

	switch p.format {
	case "csv":
		return p.csv(heads, rows)
	case "json", "ndjson":
		objects := make([]json.RawMessage, len(rows))
		for i, row := range rows {
			object, err := ordered(heads, row)
			if err != nil {
				return err
			}

			objects[i] = object
		}

		if p.format == "json" {
			return p.json(objects)
		}

		return ndjson(p, slices.Values(objects))
	}

	if len(rows) == 0 {
		p.out.printf("No rows.\n")

		return nil
	}

	for i, column := range result.columns {
		if column.Type == "double" || column.Type == "float" {
			for _, row := range rows {
				row[i] = rounded(row[i])
			}
		}
	}

	p.table(heads, rows)

	return nil
}

// decimals is the number of decimals of a double in a table.
const decimals = 6

// rounded returns a double for people. Numbers that would become whole, or lose most of their digits, are not rounded: they would
// look like other numbers.
func rounded(value any) any {
	number, is := value.(json.Number)
	if !is {
		return value
	}

	_, fraction, _ := strings.Cut(number.String(), ".")

	exact, err := number.Float64()
	if err != nil || len(fraction) <= decimals || math.Abs(exact) < 0.001 || strings.ContainsAny(fraction, "eE") {
		return value
	}

	text := strings.TrimRight(strconv.FormatFloat(exact, 'f', decimals, 64), "0")
	if strings.HasSuffix(text, ".") {
		return value
	}

	return json.Number(text)
}

// ordered returns a row as a JSON object whose members are in the order of the columns.
func ordered(heads []string, row []any) (json.RawMessage, error) {
	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)

	for i, head := range heads {
		out.WriteByte("{,"[min(i, 1)])

		if err := encoder.Encode(head); err != nil {
			return nil, err
		}

		out.WriteByte(':')

		if err := encoder.Encode(row[i]); err != nil {
			return nil, err
		}
	}

	if len(heads) == 0 {
		out.WriteByte('{')
	}

	out.WriteByte('}')

	return out.Bytes(), nil
}
