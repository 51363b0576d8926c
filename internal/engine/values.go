package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// Value is a distinct value of a text column, and how many rows have it.
type Value struct {
	Column int // of those that were asked for
	Text   string
	Count  int64
}

// ValueBounds are how many values are given. Columns with fewer values come first, and of a column with more than
// there is room for the most frequent values and some others, picked by their hash.
type ValueBounds struct {
	Column int   `json:"column"` // values of one column
	Table  int   `json:"table"`  // values of all columns
	Bytes  int64 `json:"bytes"`  // of all values
	Length int   `json:"length"` // characters of a value; longer ones are left out
}

// ValuesRequest asks for the distinct values of columns of a view.
type ValuesRequest struct {
	View    View        `json:"view"`
	Columns []string    `json:"columns"`
	Bounds  ValueBounds `json:"bounds"`
	Memory  int64       `json:"memory"`
	Threads int         `json:"threads"`
	Disk    int64       `json:"disk"`
}

// ListedColumn is what was given of a column.
type ListedColumn struct {
	Values  int64 `json:"values"`
	Long    int64 `json:"long"`    // rows whose value was left out because of its length
	Sampled bool  `json:"sampled"` // there are more values
}

// Values gives the distinct values of text columns, in any order, until yield has enough. The session ends with it.
//
// Faults: LimitExceeded, Timeout, Unavailable.
func (s *Session) Values(view View, columns []string, bounds ValueBounds, yield func(Value) bool) ([]ListedColumn, error) {
	request := ValuesRequest{
		View: view, Columns: columns, Bounds: bounds,
		Memory: s.engine.config.Memory, Threads: s.engine.config.Threads, Disk: s.engine.config.Disk,
	}

	if err := s.child.Send(Request{Values: &request}); err != nil {
		return nil, s.explain(err)
	}

	got := make([]int64, len(columns))
	lines := bufio.NewReaderSize(s.child.Data(), valueLine(bounds.Length))

	for left := bounds; ; {
		line, err := lines.ReadSlice('\n')

		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return s.listed(got)
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return nil, s.wrong("a value without end")
		case err != nil:
			return nil, s.explain(err)
		}

		value, ok := readValue(line, len(columns), bounds.Length)
		if !ok {
			return nil, s.wrong("a value that is none")
		}

		got[value.Column]++

		left.Table--
		left.Bytes -= int64(len(value.Text))

		if left.Table < 0 || left.Bytes < 0 || got[value.Column] > int64(bounds.Column) {
			return nil, s.wrong("more values than it may")
		}

		if !yield(value) {
			return nil, nil
		}
	}
}

// valueLine is how long a line can be: JSON writes a character in up to twelve bytes.
func valueLine(length int) int { return 12*length + 100 }

// readValue reads a line: an array of column, text and count.
func readValue(line []byte, columns, length int) (v Value, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	fields := []any{&v.Column, &v.Text, &v.Count}

	if err := decoder.Decode(&fields); err != nil || len(fields) != 3 || slices.Contains(fields, nil) || decoder.More() {
		return v, false
	}

	return v, v.Column >= 0 && v.Column < columns && v.Count > 0 && v.Text != "" && utf8.RuneCountInString(v.Text) <= length
}

// listed is the end of the values.
func (s *Session) listed(got []int64) ([]ListedColumn, error) {
	answer, err := s.hear()
	if err != nil {
		return nil, err
	}

	if len(answer.Listed) != len(got) {
		return nil, s.wrong("other columns")
	}

	for i, column := range answer.Listed {
		if column.Values != got[i] || column.Long < 0 {
			return nil, s.wrong("impossible counts")
		}
	}

	return answer.Listed, nil
}
