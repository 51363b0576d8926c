package engine

import "encoding/json"

// Format says how a file is read. If it is empty, the format is detected from the content.
type Format string

// The formats that a request can set explicitly.
const (
	FormatText    Format = "text" // delimited text
	FormatJSON    Format = "json" // an array of objects, or a sequence of objects
	FormatParquet Format = "parquet"
	FormatRows    Format = "rows" // a JSON object whose member data is an array of objects
)

// The types of a column. Decimal is the prefix of decimal(p,s).
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

// MaxPages is the largest number of pages of a document.
const MaxPages = 5000

// Options says how files are read. An absent option is detected.
type Options struct {
	Delimiter  string            `json:"delimiter,omitempty"`
	Quote      *string           `json:"quote,omitempty"`
	Decimal    string            `json:"decimal,omitempty"`
	Thousands  *string           `json:"thousands,omitempty"`
	DateFormat string            `json:"dateFormat,omitempty"`
	Encoding   string            `json:"encoding,omitempty"`
	Header     *bool             `json:"header,omitempty"`
	SkipRows   int               `json:"skipRows,omitempty"`
	RowsAt     string            `json:"rowsAt,omitempty"` // name of the member of a JSON object that contains the rows
	Sheet      string            `json:"sheet,omitempty"`
	NullValues []string          `json:"nullValues,omitempty"`
	Types      map[string]string `json:"types,omitempty"`
	Extract    string            `json:"extract,omitempty"` // ExtractModel, ExtractDefinition or empty; only the parent reads it
	Sample     int               `json:"sample,omitempty"`  // how many parts of documents a model reads in a dry run; only the parent reads it
}

const (
	// ExtractModel lets a language model read the rows of documents.
	ExtractModel = "model"
	// ExtractDefinition lets a language model propose a definition from documents.
	ExtractDefinition = "definition"
)

// Source is a file that was mounted in the child.
type Source struct {
	Name   string `json:"name"`
	Format Format `json:"format,omitempty"`
	// Size is the size in bytes of a file that may still be arriving while it is inspected. Zero means that it is complete.
	Size int64 `json:"size,omitempty"`
}

// Bounds contains the limits for one file.
type Bounds struct {
	Columns  int   `json:"columns"`
	Record   int64 `json:"record"`   // bytes of one record
	Unpacked int64 `json:"unpacked"` // bytes of one file after unpacking
	SetAside int   `json:"setAside"` // rows that are returned with a reason; further ones are only counted
}

// Column is a column with its type.
type Column struct {
	ID   int    `json:"id,omitempty"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// Doubt is something in a file that has more than one interpretation, with the option that decides it. A doubt with a
// code stops the ingestion until a person accepts the code.
type Doubt struct {
	Column  string `json:"column,omitempty"`
	Option  string `json:"option,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`

	Suggestions []string `json:"suggestions,omitempty"` // values of Option that settle it; for types, of the column
}

// The codes of doubts that a child can report.
const (
	NotATable   = "notATable"
	WrappedRows = "wrappedRows"
)

// Inspection is the result of inspecting all files together.
type Inspection struct {
	Columns []Column         `json:"columns"`
	Doubts  []Doubt          `json:"doubts"`
	Rows    []map[string]any `json:"rows"` // the first few rows, typed
}

// SetAside is a row set aside. Row is the number of the row, starting at 1 for the first row after the header.
type SetAside struct {
	Row    int64  `json:"row"`
	Reason string `json:"reason"`
}

// Converted is the result of converting a file to Parquet.
type Converted struct {
	Rows          int64      `json:"rows"`
	SetAsideCount int64      `json:"setAsideCount"`
	SetAside      []SetAside `json:"setAside"`
	Sketch        []uint64   `json:"sketch,omitempty"` // the smallest hashes of the rows, in ascending order
	Pages         []int64    `json:"pages,omitempty"`  // of a document: the number of the first row of each page, in ascending order
}

// Progress is the progress of the child with the current request.
type Progress struct {
	Source int     `json:"source"`
	Part   float64 `json:"part"` // fraction of the file, 0 to 1
	Rows   int64   `json:"rows"`
}

// Request is a message to the child. Exactly one member is set.
type Request struct {
	Inspect *InspectRequest `json:"inspect,omitempty"`
	Pages   *PagesRequest   `json:"pages,omitempty"`
	Convert *ConvertRequest `json:"convert,omitempty"`
	Parse   *ParseRequest   `json:"parse,omitempty"`
	Query   *Query          `json:"query,omitempty"`
	Profile *ProfileRequest `json:"profile,omitempty"`
	Values  *ValuesRequest  `json:"values,omitempty"`
	Merge   *MergeRequest   `json:"merge,omitempty"`
}

// what returns what a request asks for.
func (r Request) what() string {
	switch {
	case r.Inspect != nil:
		return "inspect"
	case r.Pages != nil:
		return "pages"
	case r.Convert != nil:
		return "convert"
	case r.Parse != nil:
		return "parse"
	case r.Query != nil:
		return "query"
	case r.Profile != nil:
		return "profile"
	case r.Values != nil:
		return "values"
	default:
		return "merge"
	}
}

// MergeRequest requests one Parquet file with the rows of all files of a view, in their order, with the ids of the
// columns.
type MergeRequest struct {
	View View `json:"view"`
	// Gone is the name under which a file with a bit for each row of the only file of the view is mounted. Rows whose bit
	// is set are left out. Empty means all rows.
	Gone    string `json:"gone,omitempty"`
	Output  string `json:"output"`
	Memory  int64  `json:"memory"`
	Threads int    `json:"threads"`
}

// InspectRequest requests an inspection of files.
type InspectRequest struct {
	Sources []Source `json:"sources"`
	Options Options  `json:"options"`
	Bounds  Bounds   `json:"bounds"`
	Fields  []string `json:"fields,omitempty"`  // the names that the definition of the dataset has for columns; documents are read with them
	Preview bool     `json:"preview,omitempty"` // also return the first rows
	IsPart  bool     `json:"isPart,omitempty"`  // the parent joins the columns with those of other files: one without values has no type
	Memory  int64    `json:"memory"`
	Threads int      `json:"threads"`
}

// PagesRequest requests the text of the pages of a document, as one JSON text for each page.
type PagesRequest struct {
	Source   Source `json:"source"`
	Encoding string `json:"encoding,omitempty"`
	Bounds   Bounds `json:"bounds"`
	Output   string `json:"output"`
}

// Paged is the result of reading the pages of a document.
type Paged struct {
	Pages  int     `json:"pages"`
	Doubts []Doubt `json:"doubts"`
}

// ConvertRequest requests the conversion of one inspected file to Parquet with exactly these columns.
type ConvertRequest struct {
	Source  int      `json:"source"`
	Columns []Column `json:"columns"`
	Output  string   `json:"output"`
	Sketch  int      `json:"sketch,omitempty"` // number of row hashes to return
}

// Answer is a message from the child. Exactly one member is set. Every answer except Progress and
// Described ends the request.
type Answer struct {
	Progress   *Progress   `json:"progress,omitempty"`
	Inspection *Inspection `json:"inspection,omitempty"`
	Paged      *Paged      `json:"paged,omitempty"`
	Converted  *Converted  `json:"converted,omitempty"`
	Failure    *FileError  `json:"failure,omitempty"`

	Parsed    json.RawMessage `json:"parsed,omitempty"`
	Described *Described      `json:"described,omitempty"`
	Ran       *Ran            `json:"ran,omitempty"`
	Refused   *StatementError `json:"refused,omitempty"`
	Profiled  *Profiled       `json:"profiled,omitempty"`
	Listed    []ListedColumn  `json:"listed,omitempty"`
}

// FileError is the reason why a request failed, written for the person who uploaded the file.
type FileError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Doubt   *Doubt `json:"doubt,omitempty"` // has the option that may let it succeed; nil if there is none
	// Source is the number, from 1, of the source of an inspection of several that is the cause; 0 if it is not known.
	Source int `json:"source,omitempty"`
}

// The codes of a FileError.
const (
	InvalidFile    = "INVALID_FILE"
	InvalidOptions = "VALIDATION_FAILED"
	TooManyColumns = "TOO_MANY_COLUMNS"
	LineTooLong    = "LINE_TOO_LONG"
	LimitExceeded  = "LIMIT_EXCEEDED"
	Internal       = "INTERNAL"
	// NoRoom means that the disk is full. The file is not the cause.
	NoRoom = "NO_ROOM"
)
