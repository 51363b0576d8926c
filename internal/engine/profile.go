package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Profile is what the values of a dataset look like. It is plain data, and what is stored.
type Profile struct {
	Rows    int64           `json:"rows"`
	Columns []ColumnProfile `json:"columns"`
	Keys    [][]string      `json:"keys"` // columns that tell all rows apart
}

// ColumnProfile is what the values of a column look like. Values are JSON as rows have it; texts are cut, and JSON
// is text.
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
	Quartiles     []json.RawMessage `json:"quartiles,omitempty"` // of numbers: three
	Shapes        []Shape           `json:"shapes,omitempty"`    // of texts, the most frequent first
	TopValues     []ValueCount      `json:"topValues,omitempty"`
	Examples      []json.RawMessage `json:"examples,omitempty"`
	Sketch        []uint32          `json:"sketch,omitempty"` // the smallest hashes of the values, folded
}

// Shape is a pattern of texts: A and a for letters, 9 for digits.
type Shape struct {
	Shape string  `json:"shape"`
	Share float64 `json:"share"` // of the rows that are not null
}

// ValueCount is a value and in how many rows it is.
type ValueCount struct {
	Value json.RawMessage `json:"value"`
	Count int64           `json:"count"`
}

// What a column's profile has at most.
const (
	ProfileTop      = 10
	ProfileExamples = 5
	ProfileShapes   = 3
	ProfileSketch   = 128
	ProfileText     = 200 // characters of a value
	wideText        = 50  // of a table with many columns
	manyColumns     = 200

	profileGroup = 50 // columns that are asked for at once
)

// What is found out about keys: only pairs of the columns with the most values are looked at.
const (
	maxKeys     = 5
	pairColumns = 8
	// Up to so many rows pairs are looked for, and a column with an estimated count is counted to be sure.
	pairRows = 2_000_000
	keyRows  = 50_000_000
	keyGuess = 0.95 // of the rows, for a count to be possibly all of them
)

// ProfileBounds are how much is counted, and how much is estimated from a part.
type ProfileBounds struct {
	Rows   int64 `json:"rows"`   // up to so many rows every value is counted
	Values int64 `json:"values"` // and so are columns with about so many values, however many rows there are
	Sample int64 `json:"sample"` // rows that estimates of shares and quartiles rest on
	Picked int64 `json:"picked"` // values that an estimate of their number rests on
}

// Of 250,000 values the standard error is 0.2 %; of 100,000 rows that of a share is 0.16 % of the rows at most.
var profileBounds = ProfileBounds{Rows: 2_000_000, Values: 500_000, Sample: 100_000, Picked: 250_000} //nolint:gochecknoglobals // a constant

// ProfileRequest asks about some columns of a view, or which sets of columns tell its rows apart.
type ProfileRequest struct {
	View   View       `json:"view"`
	Rows   int64      `json:"rows"`
	First  int        `json:"first"` // column
	Count  int        `json:"count"`
	Text   int        `json:"text"` // characters of a value
	Unique [][]string `json:"unique,omitempty"`

	Bounds  ProfileBounds `json:"bounds"`
	Memory  int64         `json:"memory"`
	Threads int           `json:"threads"`
	Disk    int64         `json:"disk"`
}

// Profiled is the answer.
type Profiled struct {
	Columns []ColumnProfile `json:"columns"`
	Unique  []bool          `json:"unique"`
}

// Profile finds out what the values of a view with so many rows look like. It goes by groups of columns, so that
// wide tables take no more memory than others.
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
			return Profile{}, s.wrong("other columns")
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

// wrong says what cannot be so.
func (c *ColumnProfile) wrong(rows int64, length int) string {
	filled := rows - c.Nulls
	within := func(n, most int64) bool { return n >= 0 && n <= most }
	positive := func(n *int64) bool { return n == nil || *n >= 0 }

	switch {
	case !within(c.Nulls, rows) || !within(c.Distinct, filled) || !positive(c.Shortest) || !positive(c.Longest):
		return "impossible counts"
	case len(c.TopValues) > ProfileTop || len(c.Examples) > ProfileExamples || len(c.Shapes) > ProfileShapes ||
		len(c.Sketch) > ProfileSketch || len(c.Quartiles) > 3:
		return "more than was asked for"
	case !slices.IsSorted(c.Sketch):
		return "a sketch out of order"
	}

	values := slices.Concat(c.Examples, c.Quartiles)

	for _, value := range []json.RawMessage{c.Min, c.Max} {
		if value != nil {
			values = append(values, value)
		}
	}

	for _, top := range c.TopValues {
		if !within(top.Count, filled) {
			return "impossible counts"
		}

		values = append(values, top.Value)
	}

	for _, value := range values {
		if !isScalar(value, length) {
			return "a value that is none"
		}
	}

	for _, shape := range c.Shapes {
		if shape.Share < 0 || shape.Share > 1 || utf8.RuneCountInString(shape.Shape) > length {
			return "a shape that is none"
		}
	}

	return ""
}

// maxNumber is how many digits and signs a number, or a date, can have.
const maxNumber = 400

// isScalar: the child writes valid JSON, because it was decoded.
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

// keys finds the columns, or if there is none the pairs, that tell all rows apart.
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

// pairs are those that could tell so many rows apart.
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

// unique are those of the sets that tell all rows apart.
func (s *Session) unique(request ProfileRequest) (sure [][]string, err error) {
	if len(request.Unique) == 0 {
		return nil, nil
	}

	answer, err := s.profile(request)
	if err != nil {
		return nil, err
	}

	if len(answer.Unique) != len(request.Unique) {
		return nil, s.wrong("other sets")
	}

	for i, set := range request.Unique {
		if answer.Unique[i] {
			sure = append(sure, set)
		}
	}

	return sure, nil
}

// Family is which columns a column can be joined with; empty: with none.
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
