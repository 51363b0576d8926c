package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// rowsFlags are the flags for the rows of a database.
type rowsFlags struct {
	table, file, cursor, overlap string
	key, asText                  []string
}

func (f *rowsFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.table, "table", "", "table or view of a database, such as public.orders; or table of a catalog, with its namespace")
	flags.StringVar(&f.file, "query-file", "", "file with one SELECT, instead of a table")
	flags.StringVar(&f.cursor, "cursor-column", "", "load only rows whose value in this column has grown; without it, each run replaces all rows")
	flags.StringVar(&f.overlap, "overlap", "", "how far before the highest value each run begins: a number, or a duration such as 10m; needs a key")
	flags.StringSliceVar(&f.key, "key", nil, "columns that identify a row of the database: rows with the same key are replaced")
	flags.StringSliceVar(&f.asText, "as-text", nil, "columns that are loaded as text")
}

func (f *rowsFlags) given() bool { return f.table != "" || f.file != "" }

func (f *rowsFlags) read() (*api.NewPostgresRows, error) {
	rows := &api.NewPostgresRows{Mode: api.Full, CursorColumn: given[string](f.cursor), Overlap: given[string](f.overlap)}

	switch {
	case f.table != "" && f.file != "":
		return nil, usageError{errors.New("give --table or --query-file, not both"), "quern source add"}
	case f.file != "":
		text, err := os.ReadFile(f.file)
		if err != nil {
			return nil, err
		}

		rows.Query = new(string(text))
	default:
		schema, table, isQualified := strings.Cut(f.table, ".")
		if !isQualified {
			schema, table = "public", f.table
		}

		rows.Schema, rows.Table = &schema, &table
	}

	if f.cursor != "" {
		rows.Mode = api.Growing
	}

	if len(f.key) > 0 {
		rows.Key = &f.key
	}

	if len(f.asText) > 0 {
		rows.AsText = &f.asText
	}

	return rows, nil
}

// loaded returns what a source loads, for people.
func loaded(s api.Source) string {
	switch {
	case s.Iceberg != nil:
		return s.Iceberg.Namespace + "." + s.Iceberg.Table
	case s.Paths != nil:
		return strings.Join(*s.Paths, ", ")
	case s.Postgresql == nil:
		return s.Prefix + s.Pattern
	case s.Postgresql.Table != nil && s.Postgresql.Schema != nil:
		return *s.Postgresql.Schema + "." + *s.Postgresql.Table
	default:
		return "a query"
	}
}
