package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// asLine returns names as the parameter of a request: as a line of CSV, because a name may have a comma.
func asLine(names []string) string {
	var line strings.Builder

	w := csv.NewWriter(&line)
	_ = w.Write(names) // a builder has no errors

	w.Flush()

	return strings.TrimSuffix(line.String(), "\n")
}

func (p *program) rowsDelete() *cobra.Command {
	var (
		where       string
		params      []string
		dryRun, yes bool
	)

	command := p.onDataset("delete DATASET --where CONDITION", "Delete the rows for which a condition is true", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		values, err := parameters(params)
		if err != nil {
			return err
		}

		want := api.RowsCondition{Condition: where, Parameters: values, DryRun: new(true)}

		found, err := api.Read[api.DeletedRows](client.DeleteRows(ctx, at.owner, at.namespace, at.dataset, nil, want))
		if err != nil {
			return err
		}

		what := counted(found.RowCount, "row", "rows")
		if dryRun {
			return p.showCondition(found, fmt.Sprintf("%s of %s would be deleted.", what, at))
		}

		if found.RowCount > 0 {
			if err := p.confirm(yes, fmt.Sprintf("Delete %s of %s?", what, at)); err != nil {
				return err
			}
		}

		want.DryRun = nil

		done, err := api.Read[api.DeletedRows](client.DeleteRows(ctx, at.owner, at.namespace, at.dataset, &api.DeleteRowsParams{IdempotencyKey: new(uuid.NewString())}, want))
		if err != nil {
			return err
		}

		return p.done("Deleted %s of %s. `quern dataset history %s` shows the snapshot before.", counted(done.RowCount, "row", "rows"), at, at)
	})
	command.Long = `Delete the rows for which a condition is true. The condition is a boolean SQL expression over the columns of the dataset, as after WHERE.
A row for which it is false or NULL stays. The command counts the rows and asks before it deletes them. Restoring the snapshot before undoes it.`
	command.Example = `  quern rows delete shop/orders --where "status = 'void'" --dry-run
  quern rows delete shop/orders --where "day < \$since" --param since:date=2024-01-01 --yes`
	command.Flags().StringVar(&where, "where", "", "the condition")
	command.Flags().StringArrayVar(&params, "param", nil, "value of a parameter of the condition, as in quern query; can be repeated")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "show how many rows would be deleted, and the first of them")
	yesFlag(command, &yes)

	_ = command.MarkFlagRequired("where") // fails only without that flag

	return command
}

// showCondition shows the first rows that a condition selects.
func (p *program) showCondition(found api.DeletedRows, summary string) error {
	var result resultRows
	if found.Columns != nil && found.Data != nil {
		result = resultRows{*found.Columns, *found.Data}
	}

	if err := p.printRows(result); err != nil {
		return err
	}

	if p.format == "table" {
		p.err.printf("%s\n", summary)
	}

	return nil
}

// bodyTypes are the media types of files with rows, by their extension.
func bodyTypes() map[string]string {
	return map[string]string{
		".csv": "text/csv", ".json": "application/json", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson",
		".parquet": "application/vnd.apache.parquet",
	}
}

func (p *program) rowsMerge() *cobra.Command {
	var (
		key    []string
		dryRun bool
	)

	command := p.onDataset("merge DATASET FILE [--key COLUMNS]", "Replace the rows with the same key, and add the others", 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		media, known := bodyTypes()[strings.ToLower(filepath.Ext(args[0]))]
		if !known {
			return usageError{errors.New("the name of the file must end with .csv, .json, .ndjson or .parquet"), "quern rows merge"}
		}

		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()

		done, err := api.Read[api.Indexed](client.AppendRowsWithBody(ctx, at.owner, at.namespace, at.dataset, &api.AppendRowsParams{
			Mode: new(api.AppendRowsParamsModeMerge), Key: given[string](asLine(key)), DryRun: &dryRun, IdempotencyKey: new(uuid.NewString()),
		}, media, file))
		if err != nil {
			return err
		}

		if dryRun && done.Replaced != nil {
			return p.done("%s would be merged into %s, and take the place of %s.", counted(done.Indexed, "row", "rows"), at, counted(*done.Replaced, "row", "rows"))
		}

		if done.RowsSetAside != nil && done.SetAside != nil {
			for _, row := range *done.SetAside {
				p.err.printf("row %d: %s\n", row.Row, row.Reason)
			}

			return p.done("Merged %s into %s, and set %d aside.", counted(done.Indexed, "row", "rows"), at, *done.RowsSetAside)
		}

		return p.done("Merged %s into %s.", counted(done.Indexed, "row", "rows"), at)
	})
	command.Long = `Replace the rows that have the same values in the columns of the key as a row of the file, and add the other rows of the file. A row is replaced
as a whole: a column that the file lacks is NULL afterwards. A row with NULL in its key matches no other row. For files larger than 64 MiB use
quern upload --key.`
	command.Example = `  quern rows merge shop/orders changes.csv --key order_id`
	command.Flags().StringSliceVar(&key, "key", nil, "the columns of the key, separated by commas; the key of the dataset if absent")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "store nothing, and count the rows that would be replaced")

	return command
}
