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

// Value is a distinct value of a text column with the number of rows that have it.
type Value struct {
	Column int // index in the requested columns
	Text   string
	Count  int64
}

// ValueBounds contains the limits for the returned values. Columns with fewer values come first. If a column has more
// values than the limits allow, the most frequent values are returned, and some others that are selected by their hash.
type ValueBounds struct {
	Column int   `json:"column"` // values of one column
	Table  int   `json:"table"`  // values of all columns
	Bytes  int64 `json:"bytes"`  // bytes of all values
	Length int   `json:"length"` // characters of a value; longer values are left out
}

// ValuesRequest requests the distinct values of columns of a view.
type ValuesRequest struct {
	View    View        `json:"view"`
	Columns []string    `json:"columns"`
	Bounds  ValueBounds `json:"bounds"`
	Memory  int64       `json:"memory"`
	Threads int         `json:"threads"`
	Disk    int64       `json:"disk"`
}

// ListedColumn reports how much of a column was returned.
type ListedColumn struct {
	Values  int64 `json:"values"`
	Long    int64 `json:"long"`    // rows whose value was left out because of its length
	Sampled bool  `json:"sampled"` // not all values were returned
}

// Values calls yield for each distinct value of text columns, in no particular order, until yield returns false. The
// session cannot be used for anything else afterwards.
//
// Faults: LimitExceeded, Timeout, Unavailable.
func (s *Session) Values(view View, columns []string, bounds ValueBounds, yield func(Value) bool) (_ []ListedColumn, err error) {
	ended := s.engine.config.Observe(s.ctx, "values")
	defer func() { ended(err) }()

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
			return nil, s.wrong("a value that is incomplete or too long")
		case err != nil:
			return nil, s.explain(err)
		}

		value, ok := readValue(line, len(columns), bounds.Length)
		if !ok {
			return nil, s.wrong("an invalid value")
		}

		got[value.Column]++

		left.Table--
		left.Bytes -= int64(len(value.Text))

		if left.Table < 0 || left.Bytes < 0 || got[value.Column] > int64(bounds.Column) {
			return nil, s.wrong("more values than allowed")
		}

		if !yield(value) {
			return nil, nil
		}
	}
}

// valueLine returns the maximum length of a line in bytes. JSON needs up to twelve bytes for a character.
func valueLine(length int) int { return 12*length + 100 }

// readValue parses a line, which is a JSON array of column, text and count.
func readValue(line []byte, columns, length int) (v Value, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	fields := []any{&v.Column, &v.Text, &v.Count}

	if err := decoder.Decode(&fields); err != nil || len(fields) != 3 || slices.Contains(fields, nil) || decoder.More() {
		return v, false
	}

	return v, v.Column >= 0 && v.Column < columns && v.Count > 0 && v.Text != "" && utf8.RuneCountInString(v.Text) <= length
}

// listed reads the last message of the child and checks that it states as many values for each column as were received.
func (s *Session) listed(got []int64) ([]ListedColumn, error) {
	answer, err := s.hear()
	if err != nil {
		return nil, err
	}

	if len(answer.Listed) != len(got) {
		return nil, s.wrong("unexpected columns")
	}

	for i, column := range answer.Listed {
		if column.Values != got[i] || column.Long < 0 {
			return nil, s.wrong("invalid counts")
		}
	}

	return answer.Listed, nil
}
