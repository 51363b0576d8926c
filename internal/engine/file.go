package engine

import "encoding/json"

// Format is how a file is to be read. It is found out by content if it is empty.
type Format string

// The formats that are not found out.
const (
	FormatText    Format = "text"    // delimited
	FormatJSON    Format = "json"    // an array of objects, or objects one after another
	FormatParquet Format = "parquet" //
	FormatRows    Format = "rows"    // a JSON object whose member data is an array of objects
)

// The types that a column can have. Decimal stands for decimal(p,s).
const (
	Boolean   = "boolean"
	Bigint    = "bigint"
	Double    = "double"
	Decimal   = "decimal"
	Date      = "date"
	Timestamp = "timestamp"
	Time      = "time"
	Varchar   = "varchar"
	JSON      = "json"
)

// Options say how files are to be read. What is absent is found out.
type Options struct {
	Delimiter  string            `json:"delimiter,omitempty"`
	Quote      *string           `json:"quote,omitempty"`
	Decimal    string            `json:"decimal,omitempty"`
	Thousands  *string           `json:"thousands,omitempty"`
	DateFormat string            `json:"dateFormat,omitempty"`
	Encoding   string            `json:"encoding,omitempty"`
	Header     *bool             `json:"header,omitempty"`
	SkipRows   int               `json:"skipRows,omitempty"`
	RowsAt     string            `json:"rowsAt,omitempty"` // the member of a JSON object that has the rows
	Sheet      string            `json:"sheet,omitempty"`
	NullValues []string          `json:"nullValues,omitempty"`
	Types      map[string]string `json:"types,omitempty"`
}

// Source is a file that was linked into the child.
type Source struct {
	Name   string `json:"name"`
	Format Format `json:"format,omitempty"`
}

// Bounds are what a file may take.
type Bounds struct {
	Columns  int   `json:"columns"`
	Record   int64 `json:"record"`   // bytes of one record
	Unpacked int64 `json:"unpacked"` // bytes of one file after unpacking
	SetAside int   `json:"setAside"` // rows that are named; the rest is only counted
}

// Column is a column with its type.
type Column struct {
	ID   int    `json:"id,omitempty"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// Doubt is something that could be read in more than one way, and the option that would settle it. One with a code stops the
// load until somebody accepts the code.
type Doubt struct {
	Column  string `json:"column,omitempty"`
	Option  string `json:"option,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

// The codes of doubts that a child can have.
const (
	NotATable   = "notATable"
	WrappedRows = "wrappedRows"
)

// Inspection is what was found out about the files together.
type Inspection struct {
	Columns []Column         `json:"columns"`
	Doubts  []Doubt          `json:"doubts"`
	Rows    []map[string]any `json:"rows"` // the first few, typed
}

// SetAside is a row that does not fit. Row counts from 1, from the first row after the header.
type SetAside struct {
	Row    int64  `json:"row"`
	Reason string `json:"reason"`
}

// Converted is a file that has become Parquet.
type Converted struct {
	Rows          int64      `json:"rows"`
	SetAsideCount int64      `json:"setAsideCount"`
	SetAside      []SetAside `json:"setAside"`
	Sketch        []uint64   `json:"sketch,omitempty"` // the smallest hashes of its rows, in order
}

// Progress is how far the child is with what it was asked.
type Progress struct {
	Source int     `json:"source"`
	Part   float64 `json:"part"` // of the file, 0 to 1
	Rows   int64   `json:"rows"`
}

// Request is what the child is asked: one of its members.
type Request struct {
	Inspect *InspectRequest `json:"inspect,omitempty"`
	Convert *ConvertRequest `json:"convert,omitempty"`
	Parse   *ParseRequest   `json:"parse,omitempty"`
	Query   *Query          `json:"query,omitempty"`
	Profile *ProfileRequest `json:"profile,omitempty"`
	Values  *ValuesRequest  `json:"values,omitempty"`
	Merge   *MergeRequest   `json:"merge,omitempty"`
}

// MergeRequest asks for the rows of all files of a view in one Parquet file, in their order, with the ids of the columns.
type MergeRequest struct {
	View    View   `json:"view"`
	Output  string `json:"output"`
	Memory  int64  `json:"memory"`
	Threads int    `json:"threads"`
}

// InspectRequest asks about files.
type InspectRequest struct {
	Sources []Source `json:"sources"`
	Options Options  `json:"options"`
	Bounds  Bounds   `json:"bounds"`
	Preview bool     `json:"preview,omitempty"` // also the first rows
	Memory  int64    `json:"memory"`
	Threads int      `json:"threads"`
}

// ConvertRequest asks for one of the inspected files as Parquet with exactly these columns.
type ConvertRequest struct {
	Source  int      `json:"source"`
	Columns []Column `json:"columns"`
	Output  string   `json:"output"`
	Sketch  int      `json:"sketch,omitempty"` // how many hashes of rows are wanted
}

// Answer is what the child says: one of its members. Anything but Progress ends the request.
type Answer struct {
	Progress   *Progress   `json:"progress,omitempty"`
	Inspection *Inspection `json:"inspection,omitempty"`
	Converted  *Converted  `json:"converted,omitempty"`
	Failure    *FileError  `json:"failure,omitempty"`

	Parsed    json.RawMessage `json:"parsed,omitempty"`
	Described *Described      `json:"described,omitempty"`
	Ran       *Ran            `json:"ran,omitempty"`
	Refused   *StatementError `json:"refused,omitempty"`
	Profiled  *Profiled       `json:"profiled,omitempty"`
	Listed    []ListedColumn  `json:"listed,omitempty"`
}

// FileError is why a request cannot be done, in words for whoever sent the file.
type FileError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of failures.
const (
	InvalidFile    = "INVALID_FILE"
	InvalidOptions = "VALIDATION_FAILED"
	TooManyColumns = "TOO_MANY_COLUMNS"
	LineTooLong    = "LINE_TOO_LONG"
	LimitExceeded  = "LIMIT_EXCEEDED"
	Internal       = "INTERNAL"
)
