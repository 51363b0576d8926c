package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/trino"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/icebergrest"
	"quern.dev/quern/internal/lake"
)

// Cluster runs the statements that read a dataset whose engine is Trino.
type Cluster struct {
	Trino      *trino.Trino
	Schemas    icebergrest.Schemas
	MaxRunning int // statements that run at once
}

// onTrino reports whether a statement runs on Trino: it reads at least one dataset whose engine that is.
func onTrino(reads []resolved) bool {
	return slices.ContainsFunc(reads, func(one resolved) bool { return one.Engine == catalog.Trino })
}

// stream is a result that is read row by row.
type stream interface {
	Next() (engine.Row, error)
	Finish() (engine.Ran, error)
}

// onCluster runs a statement on Trino. The sealed process names the columns and their types, and finds the errors in the statement, as for
// every other statement; it gets no data.
func (r *running) onCluster(ctx context.Context, who auth.Principal, want Statement, s *statement, text string, reads []resolved, limits engine.Query) (*Result, error) {
	if want.Explain {
		return nil, invalid(-1, "EXPLAIN is not supported for a dataset that Trino reads.")
	}

	if at := slices.IndexFunc(reads, func(one resolved) bool { return one.snapshot.Operation == lake.Attached }); at >= 0 {
		return nil, invalid(-1, fmt.Sprintf("The statement reads the attached dataset %s together with a dataset that Trino reads, and Trino does not have its files. Read them in two statements.", reads[at].shown))
	}

	if r.Cluster == nil {
		return nil, fault.New(fault.Unavailable, "The statement reads a dataset on Trino, but this server has no settings for Trino. Ask the operator.")
	}

	original := *s // described may rename what s names

	columns, err := r.described(ctx, who, want, s, text, reads)
	if err != nil {
		return nil, err
	}

	schema := icebergrest.New(who.Account)

	there, err := translate(&original, reads, schema.Name)
	if err != nil {
		return nil, err
	}

	if err := there.agrees(columns); err != nil {
		return nil, err
	}

	if limits.Rows > 0 && !there.limited {
		there.text += fmt.Sprintf(" LIMIT %d", limits.Rows+1) // one more shows that there are more
	}

	if err := r.at.move(ctx, r.there); err != nil {
		return nil, err
	}

	if err := r.Credentials.Check(ctx, who); err != nil {
		return nil, err
	}

	checked, written := r.Now(), make(chan error, 1)

	go func() { written <- fault.Try(func() error { return r.audit(ctx, who, distinct(reads)) }) }()

	rows, err := r.open(ctx, who, want, reads, schema, trino.Statement{
		Text: there.text, Parameters: there.values, Columns: columns, Rows: limits.Rows, Bytes: limits.Bytes,
	})
	if unaudited := <-written; unaudited != nil {
		return nil, unaudited
	}

	if err != nil {
		return nil, refused(err, reads)
	}

	result := &Result{Columns: columns, Reads: snapshots(reads), Engine: catalog.Trino, result: rows, began: r.began, given: &r.given, close: r.close, maxRows: r.MaxRows}
	result.held = func() error {
		if r.Now().Sub(checked) < checkAgain {
			return nil
		}

		return r.Credentials.Check(ctx, who)
	}

	if want.Form != Rows || want.pieces != nil {
		return result, r.spool(ctx, result, want)
	}

	return result, nil
}

// described returns the columns of the result of a statement, from a sealed process that has the datasets without their rows.
func (r *running) described(ctx context.Context, who auth.Principal, want Statement, s *statement, text string, reads []resolved) ([]Column, error) {
	query, err := r.prepare(ctx, who, want, s, text, reads)
	if err != nil {
		return nil, err
	}

	query.Form, query.Pieces, query.Rows, query.Bytes = Rows, nil, 1, r.MaxBytes

	for _, one := range s.parameters {
		query.Parameters = append(query.Parameters, s.values[folded(one)])
	}

	var views []engine.View

	for _, one := range reads {
		one.files = nil
		views = append(views, r.local.view(one, one.view(func(lake.File) string { return "" })))
	}

	query.Views = append(views, query.Views...)

	began, err := r.session.Run(query)
	if err != nil {
		return nil, refused(r.local.spelled(err), reads)
	}

	r.session.Close() // it is not needed while Trino works
	r.session = nil

	return began.Columns, nil
}

// agrees checks that the translation has the types of the statement.
func (t translated) agrees(columns []Column) error {
	if len(t.columns) != len(columns) {
		return invalid(-1, "The statement is not supported for a dataset that Trino reads: it has other columns there.")
	}

	for i, c := range columns {
		if t.columns[i] != strings.ReplaceAll(c.Type, " ", "") && t.columns[i] != nullKind {
			return invalid(-1, fmt.Sprintf("The column %q is not supported for a dataset that Trino reads: its type is %s, but would be %s there. Cast it to another type.", c.Name, c.Type, t.columns[i]))
		}
	}

	return nil
}

// open shows Trino the datasets of a statement, and starts it there.
func (r *running) open(ctx context.Context, who auth.Principal, want Statement, reads []resolved, schema icebergrest.Schema, there trino.Statement) (*trino.Result, error) {
	lasting := r.Timeout
	if want.pieces != nil || want.exported {
		lasting = r.Exports.Timeout
	}

	ctx, cancel := context.WithTimeout(ctx, lasting)
	r.releases = append(r.releases, cancel)

	var tables []icebergrest.Table

	for i, one := range reads {
		tables = append(tables, icebergrest.Table{Schema: schema.Name, Name: fmt.Sprintf("t%d", i), Account: one.Account, Dataset: one.ID, Snapshot: one.snapshot.ID})
		r.scanned += one.size()
	}

	if err := r.Cluster.Schemas.Open(ctx, schema, tables, r.Now().Add(lasting+time.Minute)); err != nil {
		return nil, err
	}

	r.releases = append(r.releases, func() { _ = r.Cluster.Schemas.Close(ctx, schema) }) // else it ends at its deadline

	there.User, there.Source, there.Schema, there.Token, there.Timeout = who.Account.String(), schema.Name, schema.Name, schema.Token, lasting

	rows, err := r.Cluster.Trino.Run(ctx, there)
	if err != nil {
		return nil, err
	}

	r.releases = append([]func(){rows.Close}, r.releases...)

	return rows, nil
}

// spool writes the rows of a result to a file, from which a sealed process makes a file in another form, or pieces.
func (r *running) spool(ctx context.Context, result *Result, want Statement) error {
	path := filepath.Join(r.Exports.Dir, "trino-"+uuid.NewString())
	defer os.Remove(path) // the sealed process has its own name for the file

	if err := r.writeLines(result.Bare, path); err != nil {
		return err
	}

	if err := r.at.move(ctx, r.gate); err != nil {
		return err
	}

	engines, lasting := r.Engine, r.Timeout
	if want.pieces != nil || want.exported {
		engines, lasting = r.Exports.Engine, r.Exports.Timeout+spare
	}

	session, err := engines.Open(ctx, lasting)
	if err != nil {
		return err
	}

	session.Progress = r.progress
	r.session = session

	const file = "rows.ndjson"
	if err := session.Mount(path, file); err != nil {
		return err
	}

	made, err := session.Run(engine.Query{
		Statement: "FROM given", Views: []engine.View{{Name: "given", Files: []string{file}, Columns: result.Columns, Lines: true}},
		Form: want.Form, ParquetVersion: want.ParquetVersion, Pieces: want.pieces,
	})
	if err != nil {
		return err
	}

	result.result, result.files = spooled{made, result.end.Truncated}, made

	return nil
}

// spooled is a result that a sealed process wrote as a file, and the limit at which its rows were cut, if any.
type spooled struct {
	*engine.Result

	truncated string
}

// Finish waits for the file.
func (s spooled) Finish() (engine.Ran, error) {
	ran, err := s.Result.Finish()
	ran.Truncated = cmp.Or(ran.Truncated, s.truncated)

	return ran, err
}

// refusedThere maps an error of Trino about a statement. The messages of Trino can contain values, so they are not repeated.
func refusedThere(said *engine.StatementError) error {
	message, isKnown := map[string]string{
		"NUMERIC_VALUE_OUT_OF_RANGE":     "A number of the statement is too large for its type. Cast the values to DOUBLE or to decimals with more digits.",
		"INVALID_CAST_ARGUMENT":          "A value cannot be cast to the type that the statement wants. Use TRY_CAST, which gives NULL.",
		"INVALID_FUNCTION_ARGUMENT":      "A function does not accept a value of the statement.",
		"DIVISION_BY_ZERO":               "The statement divides by zero. Use nullif(x, 0).",
		"SUBQUERY_MULTIPLE_ROWS":         "A subquery in an expression has more than one row. Use LIMIT 1 or an aggregate.",
		"NOT_SUPPORTED":                  "Trino, which reads a dataset of the statement, does not support a part of the statement. A subquery that uses columns of the outer query is often the cause: write a JOIN.",
		"EXPRESSION_NOT_AGGREGATE":       "A column is neither in GROUP BY nor in an aggregate such as sum or any_value. Add it to one of them.",
		"QUERY_TEXT_TOO_LARGE":           "The statement is too long for Trino. Split it.",
		"EXCEEDED_FUNCTION_MEMORY_LIMIT": "A list of the statement has too many values for Trino. Group by more columns.",
		"COMPILER_ERROR":                 "The statement is too complex for Trino. Split it.",
		"STACK_OVERFLOW":                 "The statement is too complex for Trino. Split it.",
		"QUERY_HAS_TOO_MANY_STAGES":      "The statement is too complex for Trino. Split it.",
		"EXPRESSION_NOT_IN_DISTINCT":     "ORDER BY must name columns of the result if the statement has DISTINCT.",
		"INVALID_ORDER_BY":               "The ORDER BY cannot run on Trino. Order by columns of the result.",
		"NESTED_AGGREGATION":             "An aggregate cannot contain another one. Use a subquery.",
		"NESTED_WINDOW":                  "A window function cannot contain another one. Use a subquery.",
		"TYPE_MISMATCH":                  "The types of the statement do not fit on Trino. Cast the values.",
	}[said.Subtype]
	if !isKnown {
		return fault.Wrap(said, fault.QueryInvalid, "Trino, which reads a dataset of the statement, cannot run this statement.")
	}

	return fault.Wrap(errors.New(said.Subtype), fault.QueryInvalid, message)
}
