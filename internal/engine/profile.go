package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Profile summarises the values of a dataset. It is plain data and is stored as it is.
type Profile struct {
	Rows    int64           `json:"rows"`
	Columns []ColumnProfile `json:"columns"`
	Keys    [][]string      `json:"keys"` // sets of columns whose values are unique to each row
}

// ColumnProfile summarises the values of a column. Values are JSON as in rows; texts are cut, and values of JSON
// columns are texts.
type ColumnProfile struct {
	Name          string            `json:"name"`
	Type          string            `json:"type"`
	Nulls         int64             `json:"nulls"`
	Distinct      int64             `json:"distinct"`
	DistinctExact bool              `json:"distinctExact"`
	Min           json.RawMessage   `json:"min,omitempty"`
	Max           json.RawMessage   `json:"max,omitempty"`
	Shortest      *int64            `json:"shortest,omitempty"` // of texts, in characters
	Longest       *int64            `json:"longest,omitempty"`
	AverageLength *float64          `json:"averageLength,omitempty"`
	Mean          *float64          `json:"mean,omitempty"`      // of finite numbers
	Quartiles     []json.RawMessage `json:"quartiles,omitempty"` // of numbers; three values
	Bins          []Bin             `json:"bins,omitempty"`      // of numbers, dates and timestamps; profiles of earlier versions have none
	Shapes        []Shape           `json:"shapes,omitempty"`    // of texts, most frequent first
	TopValues     []ValueCount      `json:"topValues,omitempty"`
	Examples      []json.RawMessage `json:"examples,omitempty"`
	Sketch        []uint32          `json:"sketch,omitempty"` // the smallest hashes of the folded values
}

// Bin is a part of the range of a column's values. The bins of a column have the same width and no gaps. To belongs to the bin, unless it is From
// of the next bin.
type Bin struct {
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
	Count int64           `json:"count"` // rows
}

// Shape is a pattern of texts: A and a represent letters, 9 represents digits.
type Shape struct {
	Shape string  `json:"shape"`
	Share float64 `json:"share"` // fraction of the rows that are not null
}

// ValueCount is a value with the number of rows that have it.
type ValueCount struct {
	Value json.RawMessage `json:"value"`
	Count int64           `json:"count"`
}

// The limits of a column's profile.
const (
	ProfileTop      = 10
	ProfileExamples = 5
	ProfileShapes   = 3
	ProfileBins     = 20
	ProfileSketch   = 128
	ProfileText     = 200 // characters of a value
	wideText        = 50  // the same, if the table has more than manyColumns columns
	manyColumns     = 200

	profileGroup = 50 // columns in one request
)

// The limits of the search for keys. Only pairs of the pairColumns columns with the most values are checked.
const (
	maxKeys     = 5
	pairColumns = 8
	// Pairs are searched in tables with at most pairRows rows. A column with an estimated count of values is counted
	// exactly in tables with at most keyRows rows.
	pairRows = 2_000_000
	keyRows  = 50_000_000
	keyGuess = 0.95 // fraction of the rows that an estimate must reach for the column to be counted exactly
)

// ProfileBounds says which values are counted exactly, and how large the samples for estimates are.
type ProfileBounds struct {
	Rows   int64 `json:"rows"`   // in tables with at most this many rows, every value is counted
	Values int64 `json:"values"` // columns with at most about this many values are counted in larger tables too
	Sample int64 `json:"sample"` // rows in the sample for shares and quartiles
	Picked int64 `json:"picked"` // values in the sample for the number of values
}

// With 250,000 sampled values the standard error of the number of values is 0.2 %. With 100,000 sampled rows the
// standard error of a share is at most 0.16 % of the rows.
var profileBounds = ProfileBounds{Rows: 2_000_000, Values: 500_000, Sample: 100_000, Picked: 250_000} //nolint:gochecknoglobals // a constant

// ProfileRequest requests the profiles of some columns of a view, or a check of which sets of columns are unique to
// each row.
type ProfileRequest struct {
	View   View       `json:"view"`
	Rows   int64      `json:"rows"`
	First  int        `json:"first"` // index of the first column
	Count  int        `json:"count"`
	Text   int        `json:"text"` // characters of a value
	Unique [][]string `json:"unique,omitempty"`

	Bounds  ProfileBounds `json:"bounds"`
	Memory  int64         `json:"memory"`
	Threads int           `json:"threads"`
	Disk    int64         `json:"disk"`
}

// Profiled is the answer to a ProfileRequest.
type Profiled struct {
	Columns []ColumnProfile `json:"columns"`
	Unique  []bool          `json:"unique"`
}

// Profile summarises the values of a view that has the given number of rows. It processes the columns in groups, so
// that wide tables do not need more memory than others.
//
// Faults: LimitExceeded, Timeout, Unavailable.
func (s *Session) Profile(view View, rows int64) (Profile, error) {
	request := ProfileRequest{
		View: view, Rows: rows, Text: ProfileText, Bounds: profileBounds,
		Memory: s.engine.config.Memory, Threads: s.engine.config.Threads, Disk: s.engine.config.Disk,
	}
	if len(view.Columns) > manyColumns {
		request.Text = wideText
	}

	made := Profile{Rows: rows, Columns: make([]ColumnProfile, 0, len(view.Columns)), Keys: [][]string{}}

	for request.First < len(view.Columns) {
		request.Count = min(profileGroup, len(view.Columns)-request.First)

		answer, err := s.profile(request)
		if err != nil {
			return Profile{}, err
		}

		if len(answer.Columns) != request.Count {
			return Profile{}, s.wrong("unexpected columns")
		}

		for i := range answer.Columns {
			c := &answer.Columns[i]
			c.Name, c.Type = view.Columns[request.First+i].Name, view.Columns[request.First+i].Type

			if what := c.wrong(rows, request.Text); what != "" {
				return Profile{}, s.wrong(what)
			}
		}

		made.Columns = append(made.Columns, answer.Columns...)
		request.First += request.Count
	}

	return made, s.keys(&made, request)
}

func (s *Session) profile(request ProfileRequest) (Profiled, error) {
	answer, err := s.query(Request{Profile: &request})

	switch {
	case err != nil:
		return Profiled{}, err
	case answer.Profiled == nil:
		return Profiled{}, s.wrong("no profile")
	default:
		return *answer.Profiled, nil
	}
}

// wrong returns a description of the first impossible fact in the profile, or "" if there is none.
func (c *ColumnProfile) wrong(rows int64, length int) string {
	filled := rows - c.Nulls
	within := func(n, most int64) bool { return n >= 0 && n <= most }
	positive := func(n *int64) bool { return n == nil || *n >= 0 }

	switch {
	case !within(c.Nulls, rows) || !within(c.Distinct, filled) || !positive(c.Shortest) || !positive(c.Longest):
		return "invalid counts"
	case len(c.TopValues) > ProfileTop || len(c.Examples) > ProfileExamples || len(c.Shapes) > ProfileShapes ||
		len(c.Sketch) > ProfileSketch || len(c.Quartiles) > 3 || len(c.Bins) > ProfileBins:
		return "more values than requested"
	case !slices.IsSorted(c.Sketch):
		return "an unsorted sketch"
	}

	values := slices.Concat(c.Examples, c.Quartiles)

	for _, value := range []json.RawMessage{c.Min, c.Max} {
		if value != nil {
			values = append(values, value)
		}
	}

	for _, top := range c.TopValues {
		if !within(top.Count, filled) {
			return "invalid counts"
		}

		values = append(values, top.Value)
	}

	for _, bin := range c.Bins {
		if !within(bin.Count, filled) {
			return "invalid counts"
		}

		values = append(values, bin.From, bin.To)
	}

	for _, value := range values {
		if !isScalar(value, length) {
			return "an invalid value"
		}
	}

	for _, shape := range c.Shapes {
		if shape.Share < 0 || shape.Share > 1 || utf8.RuneCountInString(shape.Shape) > length {
			return "an invalid shape"
		}
	}

	return ""
}

// maxNumber is the limit for the characters of a number or a boolean.
const maxNumber = 400

// isScalar reports whether value is a JSON text, number or boolean within the limits. Its argument is valid JSON or
// empty, because it is part of an answer that was decoded.
func isScalar(value json.RawMessage, length int) bool {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return false
	}

	switch decoded := decoded.(type) {
	case string:
		return utf8.RuneCountInString(decoded) <= max(length, ProfileText)
	case float64, bool:
		return len(value) <= maxNumber
	default:
		return false
	}
}

// keys finds the columns whose values are unique to each row, or pairs of columns if there is no such column.
func (s *Session) keys(p *Profile, request ProfileRequest) error {
	request.First, request.Count = 0, 0

	if p.Rows == 0 {
		return nil
	}

	var full []ColumnProfile

	for i := range p.Columns {
		c := &p.Columns[i]
		if c.Nulls > 0 || c.Type == Double || c.Type == JSON || c.Longest != nil && *c.Longest > ProfileText {
			continue
		}

		full = append(full, *c)

		if !c.DistinctExact && p.Rows <= keyRows && float64(c.Distinct) >= keyGuess*float64(p.Rows) {
			request.Unique = append(request.Unique, []string{c.Name})
		}
	}

	sure, err := s.unique(request)
	if err != nil {
		return err
	}

	for i := range p.Columns {
		if c := &p.Columns[i]; slices.ContainsFunc(sure, func(set []string) bool { return set[0] == c.Name }) {
			c.Distinct, c.DistinctExact = p.Rows, true
		}
	}

	for _, c := range full {
		if c.DistinctExact && c.Distinct == p.Rows || slices.ContainsFunc(sure, func(set []string) bool { return set[0] == c.Name }) {
			p.Keys = append(p.Keys, []string{c.Name})
		}
	}

	if len(p.Keys) > 0 || p.Rows > pairRows {
		p.Keys = p.Keys[:min(len(p.Keys), maxKeys)]

		return nil
	}

	request.Unique = pairs(full, p.Rows)
	sure, err = s.unique(request)
	p.Keys = append(p.Keys, sure[:min(len(sure), maxKeys)]...)

	return err
}

// pairs returns the pairs of columns that have enough distinct values to be unique to each of the rows.
func pairs(columns []ColumnProfile, rows int64) (sets [][]string) {
	columns = slices.Clone(columns)
	slices.SortStableFunc(columns, func(a, b ColumnProfile) int { return cmp.Compare(b.Distinct, a.Distinct) })
	columns = columns[:min(len(columns), pairColumns)]

	for i, a := range columns {
		for _, b := range columns[i+1:] {
			if float64(a.Distinct)*float64(b.Distinct) >= float64(rows) {
				sets = append(sets, []string{a.Name, b.Name})
			}
		}
	}

	return sets
}

// unique returns the requested sets of columns that are unique to each row.
func (s *Session) unique(request ProfileRequest) (sure [][]string, err error) {
	if len(request.Unique) == 0 {
		return nil, nil
	}

	answer, err := s.profile(request)
	if err != nil {
		return nil, err
	}

	if len(answer.Unique) != len(request.Unique) {
		return nil, s.wrong("unexpected sets")
	}

	for i, set := range request.Unique {
		if answer.Unique[i] {
			sure = append(sure, set)
		}
	}

	return sure, nil
}

// Family returns the group of types that a column of this type can be joined with, or "" if it cannot be joined.
func Family(kind string) string {
	switch {
	case kind == Varchar || kind == Date:
		return kind
	case kind == Bigint || strings.HasPrefix(kind, Decimal) && strings.HasSuffix(kind, ",0)"):
		return Bigint
	default:
		return ""
	}
}
