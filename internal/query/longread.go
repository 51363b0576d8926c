package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Piece is some rows of the result of a long statement, as a file of its own. Without its first Head and its last Tail
// bytes, and followed by the next pieces and the end, it is the result as one file.
type Piece struct {
	Number     int
	IsEnd      bool // it ends the file of the whole result, and has no rows
	Rows       int64
	Bytes      int64
	Head, Tail int64
	SHA256     []byte

	key string
}

// pieceTime is how long the address of a piece is valid.
const pieceTime = 60 * time.Second

// Pieces returns the pieces of a completed statement of the caller.
//
// Faults: NotFound; InvalidState if the statement is not completed; those of names in a statement, if the caller may no
// longer read a dataset.
func (q *Query) Pieces(ctx context.Context, who auth.Principal, id uuid.UUID) (found Long, pieces []Piece, err error) {
	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		if found, err = q.own(ctx, db, who, id); err != nil {
			return err
		}

		if found.Status != Completed {
			return found.notCompleted()
		}

		if found.allowed, err = q.stillAllowed(ctx, db, who, found); err != nil {
			return err
		}

		pieces, err = selectPieces(ctx, db, found)

		return err
	})

	return found, pieces, err
}

func (l Long) notCompleted() error {
	message := "The statement is " + string(l.Status) + ". Its result can be read when its status is completed."
	if l.Status.Ended() {
		message = "The statement has no result: its status is " + string(l.Status) + ". Run it again."
	}

	return fault.New(fault.InvalidState, message)
}

// stillAllowed returns the datasets that a statement read, if the caller may still read all of them. If not, it returns the
// fault that the statement would have now.
func (q *Query) stillAllowed(ctx context.Context, db postgres.Querier, who auth.Principal, l Long) (datasets []resolved, err error) {
	r := resolver{Query: q, who: who, want: l.Want}
	if err := r.restrict(ctx, db); err != nil {
		return nil, err
	}

	for _, t := range l.tables {
		name := table{owner: t.Owner, namespace: t.Namespace, name: t.Name, at: t.At}

		one, err := r.find(ctx, db, name)
		if err != nil {
			return nil, locate(err, l.Want.Text, 0)
		}

		if one.ID != t.Dataset {
			return nil, fault.New(fault.InvalidState, fmt.Sprintf("The statement read a dataset %s that no longer exists. Run the statement again.", name.quoted()))
		}

		datasets = append(datasets, one)
	}

	return distinct(datasets), nil
}

// auditLong records that rows of a result are given to the caller.
func (q *Query) auditLong(ctx context.Context, who auth.Principal, l Long, action string) error {
	return (&running{Query: q, action: action}).audit(ctx, who, l.allowed)
}

// PieceAddress returns an address from which anyone can download a piece for a short time.
//
// Faults: those of Pieces; NotFound if the result has no such piece.
func (q *Query) PieceAddress(ctx context.Context, who auth.Principal, id uuid.UUID, number int) (string, error) {
	found, pieces, err := q.Pieces(ctx, who, id)
	if err != nil {
		return "", err
	}

	if number < 1 || number > len(pieces) {
		return "", fault.Absent()
	}

	if err := q.auditLong(ctx, who, found, "statement.export"); err != nil {
		return "", err
	}

	return q.Exports.Store.PresignGet(ctx, pieces[number-1].key, pieceTime, fmt.Sprintf("%s-%d.%s", id, number, Extension(found.Want.Form)))
}

// LongRows reads a page of rows of a completed statement from the piece that contains its first row. A page ends with its piece.
//
// Faults: those of Pieces; InvalidState for a result in a format of which rows cannot be read; and those of the package.
func (q *Query) LongRows(ctx context.Context, who auth.Principal, id uuid.UUID, page Page, take func(columns []Column, row json.RawMessage)) (Browsed, error) {
	found, pieces, err := q.Pieces(ctx, who, id)
	if err != nil {
		return Browsed{}, err
	}

	if form := found.Want.Form; form != Parquet && form != Rows {
		return Browsed{}, fault.New(fault.InvalidState, "The rows of a result in the format "+formats()[form]+" cannot be read page by page. Read its pieces, or run the statement with the format parquet.")
	}

	if err := q.auditLong(ctx, who, found, "statement.read"); err != nil {
		return Browsed{}, err
	}

	shown, at := Browsed{Columns: found.Columns}, page.Offset

	for _, p := range pieces {
		if at >= p.Rows && !p.IsEnd {
			at -= p.Rows

			continue
		}

		if p.IsEnd {
			break
		}

		read, err := q.pieceRows(ctx, who, found, p, Page{Offset: at, Limit: page.Limit}, take)
		if next := page.Offset + read; read > 0 && next < found.Rows {
			shown.Next = next
		}

		return shown, err
	}

	return shown, nil
}

// pieceRows reads rows of a piece.
func (q *Query) pieceRows(ctx context.Context, who auth.Principal, l Long, p Piece, page Page, take func(columns []Column, row json.RawMessage)) (read int64, err error) {
	const name = "piece"

	result, err := q.begin(ctx, who, briefly, func(ctx context.Context, r *running) (*Result, error) {
		release, err := r.Lake.FetchAll(ctx, []lake.File{{Key: p.key, Size: p.Bytes}}, func(path string, _ int) error { return r.session.Mount(path, name) })
		r.releases = append(r.releases, release)

		if err != nil {
			return nil, err
		}

		if err := r.Credentials.Check(ctx, who); err != nil {
			return nil, err
		}

		began, err := r.session.Run(engine.Query{
			Statement: fmt.Sprintf(`FROM given LIMIT %d OFFSET %d`, page.Limit, page.Offset),
			Views:     []engine.View{{Name: "given", Files: []string{name}, Columns: l.Columns, Lines: l.Want.Form == Rows}},
			Form:      Rows, Rows: int64(page.Limit), Bytes: q.MaxBytes,
		})
		if err != nil {
			return nil, refused(err, nil)
		}

		return &Result{Columns: l.Columns, Engine: catalog.DuckDB, result: began, began: r.began, given: &r.given, close: r.close}, nil
	})
	if err != nil {
		return 0, err
	}
	defer result.Close()

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}

		if err != nil {
			return read, err
		}

		take(l.Columns, row)

		read++
	}
}
