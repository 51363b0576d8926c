package query

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
)

// Again writes rows that a statement returned before as a file of the given form. next returns the rows one by one; the
// columns are those of the earlier result. Again does not check who may see the rows; its caller must.
//
// Faults: those of the package.
func (q *Query) Again(ctx context.Context, who auth.Principal, columns []Column, next func() (json.RawMessage, error), form Form) (*Result, error) {
	if err := q.Folder.Room(0); err != nil {
		return nil, err
	}

	path := filepath.Join(q.Exports.Dir, "again-"+uuid.NewString())
	defer os.Remove(path) // the sealed process has its own name for the file

	if err := q.writeLines(next, path); err != nil {
		return nil, err
	}

	return q.begin(ctx, who, briefly, func(ctx context.Context, r *running) (*Result, error) {
		const file = "rows.ndjson"
		if err := r.session.Mount(path, file); err != nil {
			return nil, err
		}

		if err := r.Credentials.Check(ctx, who); err != nil {
			return nil, err
		}

		began, err := r.session.Run(engine.Query{
			Statement: "FROM given", Views: []engine.View{{Name: "given", Files: []string{file}, Columns: columns, Lines: true}}, Form: form,
		})
		if err != nil {
			return nil, err
		}

		return &Result{Columns: columns, Engine: catalog.DuckDB, result: began, files: began, began: r.began, given: &r.given, close: r.close}, nil
	})
}
