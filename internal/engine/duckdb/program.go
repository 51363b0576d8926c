// Package duckdb is the program of the sealed child that reads files and runs statements: DuckDB with Go code around
// it. It is linked only into the server's binary and runs only in a child, because the files are not trusted.
//
// A file becomes a relation of raw values: delimited text becomes texts, JSON becomes one object per line, Parquet
// keeps its types. Each column gets a parser, which says which texts it accepts and which value they have. A row with a
// text that the parser of its column does not accept is set aside. The value is never changed to fit.
package duckdb

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document"
	"quern.dev/quern/internal/sandbox"
)

// Program returns the program that the child runs.
func Program() sandbox.Program { return sandbox.Program{Prepare: prepare} }

type program struct {
	db      *database
	in, tmp string
	sources []*source
	options engine.Options
	bounds  engine.Bounds
	fields  []string
	papers  *document.Reader // set by the first document
	paged   *paging          // set if only the pages of documents are wanted

	read byteCount // bytes read by an inspection
	size atomic.Int64

	profiled *profiling

	statement string         // statement with parameters, as a subquery; empty if the statement is a view
	columns   []resultColumn // of the statement with parameters
}

// prepare opens DuckDB before the child is sealed and before any untrusted data is available.
func prepare(folder sandbox.Folder) (sandbox.Serve, error) {
	// A sealed child cannot create folders.
	if err := os.Mkdir(filepath.Join(folder.Tmp, spill), 0o700); err != nil {
		return nil, err
	}

	db, err := open(folder.In, folder.Tmp)
	if err != nil {
		return nil, err
	}

	p := &program{db: db, in: folder.In, tmp: folder.Tmp}

	return p.serve, nil
}

const progressEvery = 500 * time.Millisecond

// serve answers requests until the parent closes the connection. A statement or a list of values ends the child.
func (p *program) serve(conn *sandbox.Conn) error {
	for {
		var request engine.Request
		if err := conn.Receive(&request); err != nil {
			return err
		}

		answer, err := p.answer(request, conn)

		if isNoRoom(err) {
			answer, err = engine.Answer{Failure: &engine.FileError{Code: engine.NoRoom}}, nil
		}

		if fault, ok := errors.AsType[*failure](err); ok {
			answer, err = engine.Answer{Failure: &engine.FileError{Code: fault.code, Message: fault.message, Doubt: fault.doubt, Source: fault.source}}, nil
		}

		if refused, ok := errors.AsType[*refusal](err); ok {
			answer, err = engine.Answer{Refused: &refused.said}, nil
		}

		if err != nil {
			return withoutText(err)
		}

		if err := conn.Send(answer); err != nil || request.Query != nil || request.Values != nil {
			return err
		}
	}
}

// withoutText reduces an error of DuckDB to its kind. The error with which a child ends is written to the log of the
// service, and the text of DuckDB's error can quote values of users.
func withoutText(err error) error {
	failed, ok := errors.AsType[*statementError](err)
	if !ok {
		return err
	}

	return fmt.Errorf("DuckDB refused a statement: %s", kindOfError(failed.message))
}

// kindOfError returns the kind of a DuckDB error, which precedes the text.
func kindOfError(message string) string {
	kind, _, _ := strings.Cut(message, ":")
	if _, object, found := strings.Cut(message, `{"exception_type":"`); found {
		kind, _, _ = strings.Cut(object, `"`)
	}

	return kind
}

func (p *program) answer(request engine.Request, conn *sandbox.Conn) (engine.Answer, error) {
	switch {
	case request.Inspect != nil:
		stop := p.report(conn, func() engine.Progress { return engine.Progress{Part: p.inspected()} })
		inspection, err := p.inspect(*request.Inspect)

		return engine.Answer{Inspection: &inspection}, errors.Join(err, stop())
	case request.Pages != nil:
		stop := p.report(conn, func() engine.Progress { return engine.Progress{Part: p.inspected()} })
		paged, err := p.pagesOf(*request.Pages)

		return engine.Answer{Paged: &paged}, errors.Join(err, stop())
	case request.Convert != nil:
		stop := p.report(conn, func() engine.Progress { return p.converting(*request.Convert) })
		converted, err := p.convert(*request.Convert)

		return engine.Answer{Converted: &converted}, errors.Join(err, stop())
	case request.Parse != nil:
		return p.parse(*request.Parse)
	case request.Query != nil:
		return p.query(*request.Query, conn)
	case request.Profile != nil:
		return p.profile(*request.Profile)
	case request.Values != nil:
		return p.values(*request.Values, conn)
	case request.Merge != nil:
		merged, err := p.mergeFiles(*request.Merge)

		return engine.Answer{Converted: &merged}, err
	default:
		return engine.Answer{}, errors.New("the request is empty")
	}
}

// writtenHalf is the number of output bytes that count as half of the share of writing in the progress.
const writtenHalf = 64 << 20

// converting returns the progress of a conversion. DuckDB updates its figure only after many megabytes, so the size of
// the output contributes a tenth.
func (p *program) converting(request engine.ConvertRequest) engine.Progress {
	now := engine.Progress{Source: request.Source, Part: 0.9 * p.db.progress()}

	if written, err := os.Stat(filepath.Join(p.tmp, filepath.Base(request.Output))); err == nil {
		now.Part += 0.1 * float64(written.Size()) / float64(written.Size()+writtenHalf)
	}

	if request.Source >= 0 && request.Source < len(p.sources) {
		now.Rows = int64(now.Part * float64(p.sources[request.Source].records))
	}

	return now
}

// inspected returns the approximate progress of an inspection. A file is read up to four times.
func (p *program) inspected() float64 {
	return min(float64(p.read.Load())/float64(4*max(p.size.Load(), 1)), 1)
}

// report sends progress to the parent at regular intervals until stop is called.
func (p *program) report(conn *sandbox.Conn, now func() engine.Progress) (stop func() error) {
	end, ended := make(chan struct{}), make(chan error, 1)

	go func() {
		for {
			select {
			case <-end:
				ended <- nil

				return
			case <-time.After(progressEvery):
			}

			progress := now()
			if err := conn.Send(engine.Answer{Progress: &progress}); err != nil {
				ended <- err

				return
			}
		}
	}()

	return func() error {
		close(end)

		return <-ended
	}
}

const (
	previewRows = 20
	smallFiles  = 1 << 20 // bytes; with smaller files more than one thread has no benefit
)

// inspect returns the columns of all files together.
func (p *program) inspect(request engine.InspectRequest) (engine.Inspection, error) {
	for _, s := range request.Sources {
		if info, err := os.Stat(filepath.Join(p.in, s.Name)); err == nil {
			p.size.Add(max(info.Size(), s.Size))
		}
	}

	if p.size.Load() < smallFiles {
		request.Threads = 1
	}

	if err := p.db.limit(request.Memory, request.Threads); err != nil {
		return engine.Inspection{}, err
	}

	p.options, p.bounds, p.fields = request.Options, request.Bounds, request.Fields

	if err := checkOptions(p.options); err != nil {
		return engine.Inspection{}, err
	}

	var found engine.Inspection

	for n, s := range request.Sources {
		described, err := p.describe(s)
		if fault, ok := errors.AsType[*failure](err); ok {
			fault.source = n + 1
		}

		if err != nil {
			return found, err
		}

		p.sources = append(p.sources, described)
		found.Doubts = append(found.Doubts, described.doubts...)

		columns := make([]engine.Column, len(described.columns))
		for i, c := range described.columns {
			columns[i] = engine.Column{Name: c.name, Type: c.kind}
		}

		found.Columns = engine.Join(found.Columns, columns)
	}

	if len(found.Columns) > p.bounds.Columns {
		return found, &failure{code: engine.TooManyColumns, message: engine.TooManyInTotal(len(found.Columns), p.bounds)}
	}

	if request.IsPart {
		return found, nil
	}

	for i := range found.Columns {
		found.Columns[i].Type = cmp.Or(found.Columns[i].Type, engine.Varchar)
	}

	if !request.Preview {
		return found, nil
	}

	return found, p.preview(&found)
}

// preview adds the first rows of the first file.
func (p *program) preview(found *engine.Inspection) error {
	s := p.sources[0]
	projected := s.project(found.Columns, p.options, "NULL")

	fitting := `(` + projected.fault() + `) IS NULL`
	if len(found.Columns) > wideFile {
		fitting = "true" // values that do not fit are NULL
	}

	// Replace NaN and infinity with NULL, because JSON has no such numbers.
	var finite []string

	for _, c := range found.Columns {
		if c.Type == engine.Double {
			finite = append(finite, fmt.Sprintf(`CASE WHEN isfinite(%[1]s) THEN %[1]s END AS %[1]s`, name(c.Name)))
		}
	}

	replaced := "*"
	if len(finite) > 0 {
		replaced = `* REPLACE (` + strings.Join(finite, ", ") + `)`
	}

	list, err := rows[map[string]any](p.db, fmt.Sprintf(`SELECT %s FROM (SELECT %s FROM %s WHERE %s AND %s LIMIT %d)`,
		replaced, strings.Join(projected.columns, ", "), s.sampled(), s.counts(), fitting, previewRows))
	if err != nil {
		return explain(err)
	}

	found.Rows = list

	if len(p.options.Types) == 0 || len(found.Columns) > wideFile {
		return nil // the types that were found fit all rows of the sample
	}

	return p.doubtMisfits(found, s, &projected)
}

// doubtMisfits adds a doubt if rows of the sample do not fit the types of the options: a load would set them aside.
func (p *program) doubtMisfits(found *engine.Inspection, s *source, projected *projection) error {
	type misfit struct {
		engine.SetAside

		Misfits, Texts int64
	}

	list, err := rows[misfit](p.db, fmt.Sprintf(`SELECT * FROM (
		SELECT "row", left(reason, %d) AS reason, count(reason) OVER () AS "Misfits", count(*) OVER () AS "Texts" FROM (
			SELECT row_number() OVER () AS "row", %s AS reason FROM %s WHERE %s))
		WHERE reason IS NOT NULL ORDER BY "row" LIMIT %d`, maxReason, projected.fault(), s.sampled(), s.counts(), outlierShown))
	if err != nil || len(list) == 0 {
		return explain(err)
	}

	var named []string
	for _, m := range list {
		named = append(named, fmt.Sprintf("row %d: %s", m.Row, m.Reason))
	}

	if list[0].Misfits > int64(len(list)) {
		named = append(named, "…")
	}

	found.Doubts = append(found.Doubts, engine.Doubt{Message: fmt.Sprintf(
		"%d of the first %d rows would be set aside, because a value does not fit its type: %s", list[0].Misfits, list[0].Texts, strings.Join(named, "; "))})

	return nil
}
