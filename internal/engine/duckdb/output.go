package duckdb

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// stream writes the rows as they are computed, as one JSON object per line. If the result has provenance, file and row
// precede the object.
func (p *program) stream(d described, q engine.Query, conn *sandbox.Conn) (ran engine.Ran, err error) {
	out := bufio.NewWriterSize(conn.Data, 1<<18)
	lines := p.narrowLines

	if len(d.columns) > wideColumns {
		lines = p.wideLines
	}

	var bytes int64

	err = lines(d, q.Rows, func(line []byte) bool {
		bytes += int64(len(line)) + 1

		switch {
		case q.Rows > 0 && ran.Rows == q.Rows:
			ran.Truncated = engine.ByRows
		case q.Bytes > 0 && bytes > q.Bytes:
			ran.Truncated = engine.ByBytes
		default:
			ran.Rows++
			_, _ = out.Write(line) // Flush returns the error
			_ = out.WriteByte('\n')

			return true
		}

		return false
	})

	// Flush also after an error: the parent treats an incomplete row as a protocol violation.
	if flushed := out.Flush(); err == nil {
		err = flushed
	}

	return ran, err
}

// narrowLines returns rows that DuckDB writes as JSON.
func (p *program) narrowLines(d described, rows int64, each func(line []byte) bool) error {
	members := make([]string, len(d.columns))
	for i, c := range d.columns {
		members[i] = text(c.name) + ", " + c.kind.asJSON(name(c.name))
	}

	line := `CAST(json_object(` + strings.Join(members, ", ") + `) AS VARCHAR)`
	if d.traced {
		line = fmt.Sprintf(`concat(%s, ' ', %s, ' ', %s)`, name(engine.ProvenanceFile), name(engine.ProvenanceRow), line)
	}

	return p.db.lines(p.over(``, line, limited(rows+1, rows > 0)), each)
}

// limited returns a LIMIT clause if there is a limit.
func limited(rows int64, isLimited bool) string {
	if !isLimited {
		return ``
	}

	return fmt.Sprintf(` LIMIT %d`, rows)
}

const (
	outputFile = "result"
	cutResult  = "__cut"
)

// file writes the whole result to a file.
func (p *program) file(d described, q engine.Query) (engine.Ran, error) {
	if q.Form == engine.Arrow {
		return p.toArrow(d, q, func(int64, int64) {})
	}

	return p.copyTo(d, q)
}

// copyTo writes the result as CSV or Parquet.
func (p *program) copyTo(d described, q engine.Query) (ran engine.Ran, err error) {
	if ran.Truncated, err = p.cut(q); err != nil {
		return ran, err
	}

	options := `FORMAT parquet, COMPRESSION zstd`

	switch {
	case q.Form == engine.CSV || q.Form == engine.EscapedCSV:
		options = `FORMAT csv, HEADER true`
	case q.Form == engine.Arrow: // the file is only read by convertParquet
		options = `FORMAT parquet, COMPRESSION snappy`
	case q.ParquetVersion == 2: // integers are written as differences, and texts and doubles in an order that compresses better
		options += `, PARQUET_VERSION v2`
	}

	ran.File = outputFile
	ran.Rows, err = p.db.change(p.all(d, q, `COPY (`, `) TO `+text(filepath.Join(p.tmp, outputFile))+` (`+options+`)`))

	return ran, err
}

// cut stores a result with a row limit in a table, to detect whether the limit cuts it. It returns the limit that did.
func (p *program) cut(q engine.Query) (by string, err error) {
	if q.Rows == 0 {
		return "", nil
	}

	if err := p.db.exec(p.over(`CREATE TEMP TABLE `+cutResult+` AS `, `*`, limited(q.Rows+1, true))); err != nil {
		return "", err
	}

	more, err := p.db.value(fmt.Sprintf(`SELECT CAST(count(*) > %d AS VARCHAR) FROM %s`, q.Rows, cutResult))
	if err == nil && more == "true" {
		by = engine.ByRows
	}

	return by, err
}

// all returns a statement for all rows up to the limit, with their values as the form of the file needs them.
func (p *program) all(d described, q engine.Query, before, after string) string {
	columns, isCSV := make([]string, len(d.columns)), q.Form == engine.CSV || q.Form == engine.EscapedCSV

	for i, c := range d.columns {
		as := c.kind.asFile

		switch {
		case isCSV:
			as = c.kind.asLine
		case q.Form == engine.Arrow && c.kind.name == engine.JSON: // Arrow readers would see bytes
			as = asText
		}

		columns[i] = as(name(c.name)) + ` AS ` + name(c.name)
		if q.Form == engine.EscapedCSV {
			columns[i] = c.kind.escaped(as(name(c.name))) + ` AS ` + name(escape(c.name))
		}
	}

	list := strings.Join(columns, ", ")
	if q.Rows == 0 {
		return p.over(before, list, after)
	}

	return before + `SELECT ` + list + ` FROM ` + cutResult + limited(q.Rows, true) + after
}

// counted is a buffered writer that also records how many bytes were written.
type counted struct {
	to   *bufio.Writer
	size int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.size += int64(len(p))

	return c.to.Write(p)
}

// prepare binds a statement, and the values of its parameters to it.
func (d *database) prepare(statement string) (prepared duckdb.PreparedStatement, err error) {
	if err := expressible(statement); err != nil {
		return prepared, err
	}

	if duckdb.Prepare(d.conn, statement, &prepared) == duckdb.StateError {
		err = &statementError{duckdb.PrepareError(prepared)}
	} else {
		err = d.bind(prepared)
	}

	if err != nil {
		duckdb.DestroyPrepare(&prepared)
	}

	return prepared, err
}

// execute runs a statement to its end with the values of its parameters. The caller destroys the result.
func (d *database) execute(statement string) (rows duckdb.Result, err error) {
	prepared, err := d.prepare(statement)
	if err != nil {
		return rows, err
	}
	defer duckdb.DestroyPrepare(&prepared)

	if duckdb.ExecutePrepared(prepared, &rows) == duckdb.StateError {
		err = &statementError{duckdb.ResultError(&rows)}
	}

	return rows, err
}

// lines calls each for every text in the only column of a result, until each returns false. A text is valid only during
// the call.
func (d *database) lines(statement string, each func(line []byte) bool) error {
	return d.chunks(statement, func(chunk duckdb.DataChunk, size int) bool {
		for row, texts := 0, cellsOf(chunk, 0, size); row < size; row++ {
			if !each(texts.at(row)) {
				return false
			}
		}

		return true
	})
}

// chunks calls each for the parts of a result while the statement runs, until each returns false. The complete result
// is never in memory.
func (d *database) chunks(statement string, each func(chunk duckdb.DataChunk, size int) bool) error {
	err := d.fetch(statement, each)

	// If one thread fails, DuckDB interrupts the others and sometimes reports the interruption instead of the reason.
	// Nothing else interrupts a statement, so run it again only to get the reason.
	for range 3 {
		if !interrupted(err) {
			break
		}

		if again := d.fetch(statement, func(duckdb.DataChunk, int) bool { return true }); again != nil {
			err = again
		}
	}

	return err
}

func interrupted(err error) bool {
	failed, ok := errors.AsType[*statementError](err)

	return ok && strings.Contains(failed.message, `{"exception_type":"INTERRUPT"`)
}

func (d *database) fetch(statement string, each func(chunk duckdb.DataChunk, size int) bool) error {
	prepared, err := d.prepare(statement)
	if err != nil {
		return err
	}
	defer duckdb.DestroyPrepare(&prepared)

	var rows duckdb.Result

	state := duckdb.ExecutePreparedStreaming(prepared, &rows)
	defer duckdb.DestroyResult(&rows)

	if state == duckdb.StateError {
		return &statementError{duckdb.ResultError(&rows)}
	}

	for {
		chunk := duckdb.FetchChunk(rows)
		size := int(duckdb.DataChunkGetSize(chunk)) //nolint:gosec // at most a vector

		if size == 0 {
			duckdb.DestroyDataChunk(&chunk)

			if message := duckdb.ResultError(&rows); message != "" {
				return &statementError{message}
			}

			return nil
		}

		more := each(chunk, size)
		duckdb.DestroyDataChunk(&chunk)

		if !more {
			return nil
		}
	}
}

// value returns the only text of a result.
func (d *database) value(statement string) (value string, err error) {
	found := false
	err = d.lines(statement, func(line []byte) bool {
		value, found = string(line), true

		return false
	})

	if err == nil && !found {
		err = errors.New("DuckDB returned no value")
	}

	return value, err
}

// plan returns the second column of EXPLAIN.
func (d *database) plan(statement string) (string, error) {
	rows, err := d.execute(statement)
	defer duckdb.DestroyResult(&rows)

	if err != nil {
		return "", err
	}

	chunk := duckdb.FetchChunk(rows)
	defer duckdb.DestroyDataChunk(&chunk)

	if duckdb.DataChunkGetSize(chunk) == 0 {
		return "", nil
	}

	return duckdb.StringTData((*duckdb.StringT)(duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 1)))), nil
}
