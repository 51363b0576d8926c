package engine

import (
	"bufio"
	"bytes"
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

// Form is how a result leaves the child.
type Form string

// Rows come one by one while the statement runs; the others are files that are there when it has run.
const (
	Rows    Form = "rows"
	CSV     Form = "csv"
	Parquet Form = "parquet"
	Arrow   Form = "arrow"

	// EscapedCSV is CSV in which no text begins as a formula of a spreadsheet.
	EscapedCSV Form = "csv-escaped"
)

// View is a dataset under the name that a statement gives it.
type View struct {
	Name    string   `json:"name"`
	Files   []string `json:"files"` // as they were linked
	Columns []Column `json:"columns"`
	Mapped  bool     `json:"mapped,omitempty"` // not all files have exactly these columns: they go by their ids
	Lines   bool     `json:"lines,omitempty"`  // the files are what came out in the form Rows, with these columns
}

// Query is a statement that was checked, with everything that it needs. It is plain data.
type Query struct {
	Statement string `json:"statement"`
	Views     []View `json:"views"`
	// Traced is the statement once more, as a tree that reads TracedView and gives file and row behind its own
	// columns. If DuckDB cannot make exactly that of it, the statement runs without.
	Traced  json.RawMessage `json:"traced,omitempty"`
	Source  int             `json:"source"` // the view that it reads
	Explain bool            `json:"explain,omitempty"`
	Form    Form            `json:"form"`
	Rows    int64           `json:"rows"`  // at most; 0 is all
	Bytes   int64           `json:"bytes"` // at most, of rows
	Memory  int64           `json:"memory"`
	Threads int             `json:"threads"`
	Disk    int64           `json:"disk"`
}

// What a traced tree reads, and the columns in it that are not the dataset's.
const (
	TracedView = "__source"
	TracedFile = "__file"
	TracedRow  = "__row"
)

// ParseRequest asks for the tree of a statement.
type ParseRequest struct {
	Statement string `json:"statement"`
}

// Described is what a result will have.
type Described struct {
	Columns []Column `json:"columns"`
	Traced  bool     `json:"traced"`
}

// Ran is how a statement ended.
type Ran struct {
	Rows      int64  `json:"rows"`
	Truncated string `json:"truncated,omitempty"` // by what, if it was
	File      string `json:"file,omitempty"`
}

// The limits that cut a result.
const (
	ByRows  = "rows"
	ByBytes = "bytes"
)

// StatementError is why a statement cannot be parsed or run, in DuckDB's terms. Its texts are the child's.
type StatementError struct {
	Kind       string   `json:"kind"`              // DuckDB's kind of exception, lower case
	Subtype    string   `json:"subtype,omitempty"` // for example COLUMN_NOT_FOUND
	Message    string   `json:"message"`
	Name       string   `json:"name,omitempty"` // that is not known
	Candidates []string `json:"candidates,omitempty"`
	Position   int      `json:"position"` // in bytes from the start of the statement, -1 if unknown
}

func (e *StatementError) Error() string { return e.Kind + ": " + e.Message }

// Parse gives the tree of a statement, as DuckDB writes it, of which nothing has run.
//
// Faults: *StatementError.
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

// Result is a statement that runs. The session ends with it.
type Result struct {
	Described

	session     *Session
	lines       *bufio.Reader
	rows, bytes int64 // that may still come
	ran         *Ran
}

// Row is one row as a JSON object. File and Number say where it comes from if the result is traced: the file of
// the view and the row in it, both from 0.
type Row struct {
	JSON   json.RawMessage
	File   int
	Number int64
}

const (
	maxNames  = 5000
	rowBuffer = 64 << 10

	maxCellDepth = 5000 // readers of JSON go twice as deep
)

// Run begins to run a checked statement; its error is about the statement's names and types, later ones about
// values.
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

	result := &Result{Described: *answer.Described, session: s, lines: bufio.NewReaderSize(s.child.Data(), rowBuffer), rows: q.Rows, bytes: q.Bytes}
	if q.Rows == 0 || q.Explain {
		result.rows = math.MaxInt64
	}

	if q.Bytes == 0 {
		result.bytes = math.MaxInt64
	}

	return result, nil
}

// Next gives the next row, and io.EOF after the last one. It is for results in the form Rows. The row is valid
// until the next call.
func (r *Result) Next() (Row, error) {
	line, err := r.line()

	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		if _, err := r.Finish(); err != nil {
			return Row{}, err
		}

		return Row{}, io.EOF
	case errors.Is(err, io.EOF):
		return Row{}, r.session.wrong("half a row")
	case errors.Is(err, errLong):
		return Row{}, r.session.wrong(err.Error())
	case err != nil:
		return Row{}, r.session.explain(err)
	}

	r.rows, r.bytes = r.rows-1, r.bytes-int64(len(line))
	if r.rows < 0 || r.bytes < 0 {
		return Row{}, r.session.wrong("more than it may")
	}

	row := Row{JSON: line[:len(line)-1]}
	if r.Traced {
		if row, err = traced(row.JSON); err != nil {
			return Row{}, r.session.wrong("a row without its place") // the error would quote it
		}
	}

	if Depth(row.JSON) > maxCellDepth {
		return Row{}, fault.New(fault.LimitExceeded, fmt.Sprintf("A row is nested deeper than %d levels.", maxCellDepth))
	}

	if len(row.JSON) < 2 || row.JSON[0] != '{' || !json.Valid(row.JSON) {
		return Row{}, r.session.wrong("a row that is no JSON object")
	}

	return row, nil
}

var errLong = errors.New("a row without end")

// line reads up to a newline. It is not longer than all rows may be together, nor than the child's memory.
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

// traced takes a line of file, row and object apart.
func traced(line []byte) (row Row, err error) {
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

	switch {
	case err != nil:
		return Ran{}, err
	case answer.Ran == nil || answer.Ran.Rows < 0:
		return Ran{}, r.session.wrong("no end")
	}

	r.ran = answer.Ran

	return *r.ran, nil
}

// query sends a request about a statement and gets the first answer.
func (s *Session) query(request Request) (Answer, error) {
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

	if refused := answer.Refused; refused != nil {
		refused.Message, refused.Name = clean(refused.Message), clean(refused.Name)
		if len(refused.Candidates) > 20 {
			refused.Candidates = refused.Candidates[:20]
		}

		return Answer{}, s.limits(refused)
	}

	return answer, nil
}

// limits tells a statement that wants too much from one that is wrong.
func (s *Session) limits(refused *StatementError) error {
	switch {
	case refused.Kind == "out of memory":
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The statement needs more memory than the %s that it may have. Read fewer rows or columns, or group by fewer values.", size(s.engine.config.Memory)))
	case strings.Contains(refused.Message, "max_temp_directory_size") || refused.Kind == "io" && strings.Contains(refused.Message, "too large"):
		return fault.New(fault.LimitExceeded, fmt.Sprintf("The statement needs more disk than the %s that it may have.", size(s.engine.config.Disk)))
	default:
		return refused
	}
}

// explain says why a child that runs a statement has no answer.
func (s *Session) explain(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.Is(err, sandbox.ErrMemory):
		return fault.Wrap(err, fault.LimitExceeded, fmt.Sprintf("The statement needs more memory than the %s that it may have.", size(s.engine.config.Memory)))
	case errors.Is(err, sandbox.ErrOutput):
		return fault.Wrap(err, fault.LimitExceeded, fmt.Sprintf("The statement needs more disk than the %s that it may have, or its result is too large.", size(s.engine.config.Disk)))
	case errors.Is(err, sandbox.ErrTimeout):
		return fault.Wrap(err, fault.Timeout, "The statement took too long. Read fewer rows, or ask for less.")
	case errors.Is(err, sandbox.ErrKilled) && s.child.Close().Signal == syscall.SIGKILL:
		return unavailable(err) // by somebody outside, perhaps for want of memory
	case errors.Is(err, io.EOF): // would look like the end of the rows
		return s.wrong("no answer")
	case errors.Is(err, sandbox.ErrKilled):
		return fault.Wrap(err, fault.QueryInvalid, "The engine cannot run this statement: it makes it fail.")
	default:
		return fault.Wrap(err, fault.Internal, "The statement could not be run.")
	}
}

func (s *Session) wrong(what string) error {
	return fault.Wrap(fmt.Errorf("%w: %s", sandbox.ErrProtocol, what), fault.Internal, "The statement could not be run.")
}

// size is a number of bytes for people.
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

// Take ends the child and moves the file of a result to a new place.
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

// Depth is how deep JSON is nested.
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
