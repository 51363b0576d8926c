package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/sandbox"
)

// Form is the form in which the child returns a result.
type Form string

// Rows are streamed while the statement runs. The other forms are files that exist after the statement has finished.
const (
	Rows    Form = "rows"
	CSV     Form = "csv"
	Parquet Form = "parquet"
	Arrow   Form = "arrow"

	// EscapedCSV is CSV in which no text starts like a spreadsheet formula.
	EscapedCSV Form = "csv-escaped"
)

// View is a dataset under the name that the statement uses for it.
type View struct {
	Schema  string   `json:"schema,omitempty"` // is created if it does not exist; empty means that of the query
	Name    string   `json:"name"`
	Files   []string `json:"files"` // names under which the files were mounted
	Columns []Column `json:"columns"`
	Mapped  bool     `json:"mapped,omitempty"` // not all files have exactly these columns, so columns are matched by id
	Lines   bool     `json:"lines,omitempty"`  // the files are results in the form Rows with these columns
	// Positions adds the columns ProvenanceFile and ProvenanceRow, which say where in the files a row is.
	Positions bool `json:"positions,omitempty"`
}

// Query is a checked statement with everything that the child needs to run it. It is plain data.
type Query struct {
	Statement  string      `json:"statement"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Schema     string      `json:"schema,omitempty"` // of names without a schema; is created if it does not exist
	Views      []View      `json:"views"`
	// ProvenanceTree is the same statement as a tree that reads ProvenanceView and returns the file and row of each row
	// in addition to the statement's own columns. If DuckDB cannot build a query with exactly these columns from it,
	// the statement runs without provenance.
	ProvenanceTree json.RawMessage `json:"traced,omitempty"`
	Source         int             `json:"source"` // index of the view that ProvenanceTree reads
	Explain        bool            `json:"explain,omitempty"`
	Form           Form            `json:"form"`
	ParquetVersion int             `json:"parquetVersion,omitempty"` // of the form Parquet; 0 means 1
	Rows           int64           `json:"rows"`                     // limit; 0 means no limit
	Bytes          int64           `json:"bytes"`                    // limit for the bytes of all rows; 0 means no limit
	Memory         int64           `json:"memory"`
	Threads        int             `json:"threads"`
	Disk           int64           `json:"disk"`
	// Pieces, if it is set, makes the result a file in any form, Rows too, that is cut into pieces of about this size.
	Pieces *PieceSize `json:"pieces,omitempty"`
}

// Parameter is the value of a parameter of a statement. It is never part of the text of a statement.
type Parameter struct {
	Name  string  `json:"name"` // without $; the number of a positional parameter, starting at 1
	Type  string  `json:"type"` // type of a column, or Integer; empty for NULL
	Value *string `json:"value"`
}

// Integer is the type of a parameter that has 32 bits. No column has it.
const Integer = "integer"

// ProvenanceView is the name of the view that a provenance tree reads. ProvenanceFile and ProvenanceRow are the columns
// of that view that do not belong to the dataset.
const (
	ProvenanceView = "__source"
	ProvenanceFile = "__file"
	ProvenanceRow  = "__row"
)

// ParseRequest requests the tree of a statement.
type ParseRequest struct {
	Statement string `json:"statement"`
}

// Described describes a result before its first row.
type Described struct {
	Columns        []Column `json:"columns"`
	ProvenanceTree bool     `json:"traced"`
}

// Ran reports how a statement ended.
type Ran struct {
	Rows      int64  `json:"rows"`
	Truncated string `json:"truncated,omitempty"` // the limit that cut the result; empty if it is complete
	File      string `json:"file,omitempty"`

	Pieces []Piece `json:"pieces,omitempty"` // of File, only if the query asked for pieces
	End    Span    `json:"end"`              // what follows the pieces in File
	Ends   string  `json:"ends,omitempty"`   // the file that contains the heads and tails; empty if there are none
}

// The limits that can cut a result.
const (
	ByRows  = "rows"
	ByBytes = "bytes"
)

// StatementError is the reason why DuckDB cannot parse or run a statement. Its texts come from the child.
type StatementError struct {
	Kind       string   `json:"kind"`              // DuckDB's kind of exception, lower case
	Subtype    string   `json:"subtype,omitempty"` // for example COLUMN_NOT_FOUND
	Message    string   `json:"message"`
	Name       string   `json:"name,omitempty"` // the unknown name
	Candidates []string `json:"candidates,omitempty"`
	Position   int      `json:"position"` // in bytes from the start of the statement, -1 if unknown
}

func (e *StatementError) Error() string { return e.Kind + ": " + e.Message }

// Parse returns the tree of a statement in DuckDB's own format. It does not run the statement.
//
// Faults: *StatementError if the statement cannot be parsed.
func (s *Session) Parse(statement string) (json.RawMessage, error) {
	answer, err := s.query(Request{Parse: &ParseRequest{Statement: statement}})

	switch {
	case err != nil:
		return nil, err
	case answer.Parsed == nil:
		return nil, s.wrong("no tree")
	}

	return answer.Parsed, nil
}

// Result is a running statement. The session cannot be used for anything else afterwards.
type Result struct {
	Described

	session     *Session
	inPieces    bool
	lines       *bufio.Reader
	rows, bytes int64 // what the child may still return
	ran         *Ran
}

// Row is one row as a JSON object. If the result has provenance, File is the index of the file in the view and Number
// the row in that file, both starting at 0.
type Row struct {
	JSON   json.RawMessage
	File   int
	Number int64
}

const (
	maxNames  = 5000
	rowBuffer = 64 << 10

	maxCellDepth = 5000 // half of the depth that JSON readers accept
)

// Run starts a checked statement. Errors in names and types are returned here; errors in values are returned by Next
// and Finish.
//
// Faults: *StatementError, LimitExceeded, Timeout, Unavailable.
func (s *Session) Run(q Query) (*Result, error) {
	q.Memory, q.Threads, q.Disk = s.engine.config.Memory, s.engine.config.Threads, s.engine.config.Disk

	answer, err := s.query(Request{Query: &q})

	switch {
	case err != nil:
		return nil, err
	case answer.Described == nil:
		return nil, s.wrong("no description")
	case len(answer.Described.Columns) > maxNames:
		return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("The result has %d columns; %d are allowed.", len(answer.Described.Columns), maxNames))
	}

	for i := range answer.Described.Columns {
		c := &answer.Described.Columns[i]
		c.Name, c.Type = clean(c.Name), clean(c.Type)
	}

	result := &Result{Described: *answer.Described, session: s, inPieces: q.Pieces != nil, lines: bufio.NewReaderSize(s.child.Data(), rowBuffer), rows: q.Rows, bytes: q.Bytes}
	if q.Rows == 0 || q.Explain {
		result.rows = math.MaxInt64
	}

	if q.Bytes == 0 {
		result.bytes = math.MaxInt64
	}

	return result, nil
}

// Next returns the next row, and io.EOF after the last one. It may only be called for results in the form Rows. The row
// is valid until the next call.
func (r *Result) Next() (Row, error) {
	line, err := r.line()

	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		if _, err := r.Finish(); err != nil {
			return Row{}, err
		}

		return Row{}, io.EOF
	case errors.Is(err, io.EOF):
		return Row{}, r.session.wrong("an incomplete row")
	case errors.Is(err, errLong):
		return Row{}, r.session.wrong(err.Error())
	case err != nil:
		return Row{}, r.session.explain(err)
	}

	r.rows, r.bytes = r.rows-1, r.bytes-int64(len(line))
	if r.rows < 0 || r.bytes < 0 {
		return Row{}, r.session.wrong("more rows or bytes than allowed")
	}

	row := Row{JSON: line[:len(line)-1]}
	if r.ProvenanceTree {
		if row, err = parseRow(row.JSON); err != nil {
			return Row{}, r.session.wrong("a row without provenance") // err is not wrapped because it would quote the row
		}
	}

	if Depth(row.JSON) > maxCellDepth {
		return Row{}, fault.New(fault.LimitExceeded, fmt.Sprintf("A row is nested deeper than %d levels.", maxCellDepth))
	}

	if len(row.JSON) < 2 || row.JSON[0] != '{' || !json.Valid(row.JSON) {
		return Row{}, r.session.wrong("a row that is not a JSON object")
	}

	return row, nil
}

var errLong = errors.New("a row that is too long")

// line reads up to and including the next newline. The length is limited by the bytes that all rows may still have and
// by the child's memory.
func (r *Result) line() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}

	longest := min(r.bytes, r.session.engine.config.Memory)
	whole := bytes.Clone(line)

	for errors.Is(err, bufio.ErrBufferFull) {
		if int64(len(whole)) > longest {
			return nil, errLong
		}

		line, err = r.lines.ReadSlice('\n')
		whole = append(whole, line...)
	}

	return whole, err
}

// parseRow splits a line into file, row number and JSON object.
func parseRow(line []byte) (row Row, err error) {
	file, rest, _ := bytes.Cut(line, []byte{' '})
	number, object, _ := bytes.Cut(rest, []byte{' '})

	if row.File, err = strconv.Atoi(string(file)); err != nil {
		return Row{}, err
	}

	if row.Number, err = strconv.ParseInt(string(number), 10, 64); err != nil {
		return Row{}, err
	}

	row.JSON = object

	return row, nil
}

// Finish waits for the end of the statement.
func (r *Result) Finish() (Ran, error) {
	if r.ran != nil {
		return *r.ran, nil
	}

	answer, err := r.session.hear()
	for err == nil && answer.Progress != nil {
		if done := *answer.Progress; r.session.Progress != nil && done.Part >= 0 && done.Part <= 1 {
			r.session.Progress(done)
		}

		answer, err = r.session.hear()
	}

	switch {
	case err != nil:
		return Ran{}, err
	case answer.Ran == nil || answer.Ran.Rows < 0:
		return Ran{}, r.session.wrong("no end of the result")
	case r.inPieces && !answer.Ran.isWhole():
		return Ran{}, r.session.wrong("pieces that are not the result")
	}

	r.ran = answer.Ran

	return *r.ran, nil
}

// query sends a request about a statement and returns the first answer.
func (s *Session) query(request Request) (_ Answer, err error) {
	ended := s.engine.config.Observe(s.ctx, request.what())
	defer func() { ended(err) }()

	if err := s.child.Send(request); err != nil {
		return Answer{}, s.explain(err)
	}

	return s.hear()
}

func (s *Session) hear() (Answer, error) {
	var answer Answer
	if err := s.child.Receive(&answer); err != nil {
		return Answer{}, s.explain(err)
	}

	if answer.Failure != nil && answer.Failure.Code == NoRoom {
		return Answer{}, noRoom()
	}

	if refused := answer.Refused; refused != nil {
		refused.Message, refused.Name = clean(refused.Message), clean(refused.Name)
		if len(refused.Candidates) > 20 {
			refused.Candidates = refused.Candidates[:20]
		}

		return Answer{}, s.limits(refused)
	}

	return answer, nil
}

// limits maps a refusal that was caused by a limit to LimitExceeded. It returns any other refusal unchanged.
func (s *Session) limits(refused *StatementError) error {
	switch {
	case refused.Kind == "out of memory":
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The statement needs more memory than the limit of %s. Read fewer rows or columns, or group by fewer values.", size(s.engine.config.Memory)))
	case strings.Contains(refused.Message, "max_temp_directory_size") || refused.Kind == "io" && strings.Contains(refused.Message, "too large"):
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The statement needs more disk space than the limit of %s. Read fewer rows or columns.", size(s.engine.config.Disk)))
	default:
		return refused
	}
}

// explain maps an error of a child that runs a statement to a fault.
func (s *Session) explain(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case fault.IsNoRoom(err):
		return fault.NoRoom(err)
	case errors.Is(err, sandbox.ErrMemory):
		return fault.Wrap(err, fault.LimitExceeded, fmt.Sprintf("The statement needs more memory than the limit of %s. Read fewer rows or columns.", size(s.engine.config.Memory)))
	case errors.Is(err, sandbox.ErrOutput):
		return fault.Wrap(err, fault.LimitExceeded, fmt.Sprintf("The statement needs more disk space than the limit of %s, or its result is too large. Read fewer rows or columns.", size(s.engine.config.Disk)))
	case errors.Is(err, sandbox.ErrTimeout):
		return fault.Wrap(err, fault.Timeout, "The statement reached its time limit. Read fewer rows or columns.")
	case errors.Is(err, sandbox.ErrKilled) && s.child.Close().Signal == syscall.SIGKILL:
		return unavailable(err) // killed from outside, perhaps because the machine ran out of memory
	case errors.Is(err, io.EOF): // callers would take io.EOF for the end of the rows
		return s.wrong("no answer")
	case errors.Is(err, sandbox.ErrKilled):
		return fault.Wrap(err, fault.QueryInvalid, "The engine cannot run this statement: the statement crashes it.")
	default:
		return fault.Wrap(err, fault.Internal, "The statement could not be run.")
	}
}

func (s *Session) wrong(what string) error {
	return fault.Wrap(fmt.Errorf("%w: %s", sandbox.ErrProtocol, what), fault.Internal, "The statement could not be run.")
}

// size formats a number of bytes for messages.
func size(bytes int64) string {
	for _, unit := range []struct {
		name string
		of   int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		if bytes >= unit.of {
			return strconv.FormatInt(bytes/unit.of, 10) + " " + unit.name
		}
	}

	return strconv.FormatInt(bytes, 10) + " bytes"
}

// Take ends the child and moves the file of the result to the path to. It returns the size of the file in bytes.
func (r *Result) Take(to string) (int64, error) {
	if r.ran == nil || r.ran.File == "" {
		return 0, r.session.wrong("no file")
	}

	size, err := r.session.child.Take(r.ran.File, to, r.session.engine.config.Disk)
	if err != nil {
		return 0, r.session.explain(err)
	}

	return size, nil
}

// Depth returns the deepest level of nesting of a JSON text.
func Depth(value []byte) (deepest int) {
	level, inText := 0, false

	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}

	return deepest
}
