package server

import (
	"quern.dev/quern/api"
	"quern.dev/quern/internal/source"
)

// readRowsOf returns which rows of a database a source loads.
func readRowsOf(rows api.NewPostgresRows) *source.Rows {
	want := &source.Rows{
		Schema: value(rows.Schema), Table: value(rows.Table), Query: value(rows.Query), Mode: string(rows.Mode), Cursor: value(rows.CursorColumn), Overlap: value(rows.Overlap),
		Key: value(rows.Key), AsText: value(rows.AsText),
	}

	if want.Schema == "" && want.Table != "" {
		want.Schema = "public"
	}

	return want
}

func showRowsOf(s source.Source) *api.PostgresRows {
	shown := &api.PostgresRows{
		Schema: optionalText(s.Rows.Schema), Table: optionalText(s.Rows.Table), Query: optionalText(s.Rows.Query), Mode: api.PostgresRowsMode(s.Rows.Mode),
		CursorColumn: optionalText(s.Rows.Cursor), Overlap: optionalText(s.Rows.Overlap), Cursor: optionalText(s.Cursor),
	}

	if len(s.Rows.Key) > 0 {
		shown.Key = &s.Rows.Key
	}

	if len(s.Rows.AsText) > 0 {
		shown.AsText = &s.Rows.AsText
	}

	return shown
}
