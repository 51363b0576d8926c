package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// Page selects some rows of a dataset. The zero Snapshot means the current one.
type Page struct {
	Columns  []string // all if empty
	Snapshot uuid.UUID
	Offset   int64
	Limit    int
}

// Browsed describes a page of rows of a snapshot, in the order in which they were added.
type Browsed struct {
	Columns  []Column
	Snapshot uuid.UUID
	Next     int64 // offset of the next page; 0 if there is none
}

// Browse reads a page of rows, and only the data files that contain them. It calls take with the columns and each row,
// which is valid until take returns. If take returns false, the row is not part of the page and the page ends.
//
// Faults: NotFound, ValidationFailed, and those of the package.
func (q *Query) Browse(ctx context.Context, who auth.Principal, at catalog.Path, page Page, take func(columns []Column, row json.RawMessage) bool) (Browsed, error) {
	one, err := q.one(ctx, who, at, page.Snapshot)
	if err != nil || one.snapshot.ID == uuid.Nil {
		return Browsed{}, err
	}

	text, err := one.page(page)
	if err != nil {
		return Browsed{}, err
	}

	result, err := q.begin(ctx, who, briefly, func(ctx context.Context, r *running) (*Result, error) {
		checked, err := r.parse(text)
		if err != nil {
			return nil, err
		}

		r.action = "rows.list"

		return r.run(ctx, who, checked, []resolved{one}, engine.Query{Statement: text, Form: Rows, Rows: int64(page.Limit), Bytes: q.MaxBytes})
	})
	if err != nil {
		return Browsed{}, err
	}
	defer result.Close()

	shown := Browsed{Columns: result.Columns, Snapshot: one.snapshot.ID}
	next := page.Offset

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return Browsed{}, err
		}

		if !take(result.Columns, row) {
			break
		}

		next++
	}

	if next > page.Offset && next < one.snapshot.Rows {
		shown.Next = next
	}

	return shown, nil
}

// one resolves a dataset by its path, at the given snapshot or, for uuid.Nil, at the current one. The snapshot of the
// result is zero if the dataset has no snapshot yet.
func (q *Query) one(ctx context.Context, who auth.Principal, at catalog.Path, snapshot uuid.UUID) (one resolved, err error) {
	var old bool

	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		dataset, err := q.Catalog.Allow(ctx, db, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		one = resolved{Dataset: dataset, owner: who.NameOf(at.Username), name: dataset.Name, shown: dataset.Name}

		current, files, err := q.Lake.Current(ctx, db, one.table())
		if err != nil || current == nil {
			return err
		}

		one.snapshot, one.files = *current, files

		if old = snapshot != uuid.Nil && snapshot != current.ID; !old {
			return nil
		}

		one.snapshot, err = q.Lake.Snapshot(ctx, db, one.table(), snapshot)
		if fault.Is(err, fault.NotFound) {
			return fault.Invalid("cursor", "refers to rows that no longer exist; start again without a cursor")
		}

		return err
	})
	if err != nil || !old {
		return one, err
	}

	one.files, err = q.Lake.Files(ctx, one.table(), snapshot)

	return one, err
}

// noPageColumn returns the fault for a name in columns that the dataset does not have.
func noPageColumn(name string, known []string) error {
	message := fmt.Sprintf("There is no column %q.", name)
	if near := lexicon.Nearest(name, known); len(near) > 0 {
		message += " Did you mean " + near[0] + "?"
	}

	return fault.Invalid("columns", message)
}

// page returns the statement for a page. It also drops the data files before and after the page.
func (r *resolved) page(page Page) (text string, err error) {
	offset := page.Offset

	for len(r.files) > 1 && offset >= r.files[0].Rows {
		offset -= r.files[0].Rows
		r.files = r.files[1:]
	}

	r.files = first(r.files, offset+int64(page.Limit))

	columns := make([]string, 0, len(page.Columns))

	for _, name := range page.Columns {
		i := slices.IndexFunc(r.snapshot.Columns, func(c lake.Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return "", noPageColumn(name, columnNames([]resolved{*r}))
		}

		columns = append(columns, identifier(r.snapshot.Columns[i].Name))
	}

	if len(columns) == 0 {
		columns = append(columns, "*")
	}

	return fmt.Sprintf(`FROM %s SELECT %s LIMIT %d OFFSET %d`, identifier(r.name), strings.Join(columns, ", "), page.Limit, offset), nil
}

// first returns the files that contain the given number of first rows.
func first(files []lake.File, rows int64) []lake.File {
	for i, file := range files {
		if rows -= file.Rows; rows <= 0 {
			return files[:i+1]
		}
	}

	return files
}

// identifier returns a name quoted for SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
