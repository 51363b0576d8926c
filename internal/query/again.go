package query

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/engine"
)

// Again makes a file of rows that a statement gave before, with the columns that it had; next gives them one by one. Who
// may see them is for the caller to know.
//
// Faults: as the package says.
func (q *Query) Again(ctx context.Context, who auth.Principal, columns []Column, next func() (json.RawMessage, error), form Form) (*Result, error) {
	path := filepath.Join(q.Exports.Dir, "again-"+uuid.NewString())
	defer os.Remove(path) // the child has a name of its own for it

	if err := writeLines(next, path); err != nil {
		return nil, err
	}

	return q.begin(ctx, who, q.Time, func(r *running) (*Result, error) {
		const file = "rows.ndjson"
		if err := r.session.Link(path, file); err != nil {
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

		return &Result{Columns: columns, result: began, began: r.began, given: &r.given, close: r.close}, nil
	})
}
