package benchmark

import (
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/query"
)

// read returns the table of a JSON array of objects, whose columns are given as "name type, name type".
func read(t *testing.T, columns, rows string) table {
	t.Helper()

	var (
		list  []query.Column
		lines []json.RawMessage
	)

	for text := range strings.SplitSeq(columns, ", ") {
		name, kind, _ := strings.Cut(text, " ")
		list = append(list, query.Column{Name: name, Type: kind})
	}

	require.NoError(t, json.Unmarshal([]byte(rows), &lines))

	found, err := readTable(list, func() (json.RawMessage, error) {
		if len(lines) == 0 {
			return nil, io.EOF
		}

		line := lines[0]
		lines = lines[1:]

		return line, nil
	})
	require.NoError(t, err)

	return found
}

func TestCompare(t *testing.T) {
	t.Parallel()

	const (
		values = "The number of rows is right, but not their values."
		order  = "The rows are right, but their order is not."
	)

	for _, c := range []struct {
		about, columns, got, goldColumns, gold string
		ordered                                bool
		detail                                 string // empty: right
	}{
		{"other names", "n bigint", `[{"n": 3}]`, "orders bigint", `[{"orders": 3}]`, false, ""},
		{"another number", "n bigint", `[{"n": 3}]`, "orders bigint", `[{"orders": 4}]`, false, values},
		{"within the tolerance", "n double", `[{"n": 3.004}]`, "n double", `[{"n": 3}]`, false, ""},
		{"a millionth", "n double", `[{"n": 1000000.9}]`, "n double", `[{"n": 1000000}]`, false, ""},
		{"beyond the tolerance", "n double", `[{"n": 3.006}]`, "n double", `[{"n": 3}]`, false, values},
		{"further columns", "a varchar, n bigint", `[{"a": "x", "n": 1}]`, "n bigint", `[{"n": 1}]`, false, ""},
		{"a missing column", "n bigint", `[{"n": 1}]`, "a varchar, n bigint", `[{"a": "x", "n": 1}]`, false, values},
		{"columns changed places", "n bigint, m bigint", `[{"n": 1, "m": 2}, {"n": 2, "m": 1}, {"n": 1, "m": 1}]`, "a bigint, b bigint", `[{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1, "b": 1}]`, false, ""},
		{"rows paired otherwise", "a varchar, n bigint", `[{"a": "x", "n": 1}, {"a": "y", "n": 2}]`, "a varchar, n bigint", `[{"a": "x", "n": 2}, {"a": "y", "n": 1}]`, false, values},
		{"repeated rows", "a varchar", `[{"a": "x"}, {"a": "x"}]`, "a varchar", `[{"a": "x"}]`, false, ""},
		{"any order", "a varchar", `[{"a": "y"}, {"a": "x"}]`, "a varchar", `[{"a": "x"}, {"a": "y"}]`, false, ""},
		{"an order", "a varchar", `[{"a": "y"}, {"a": "x"}]`, "a varchar", `[{"a": "x"}, {"a": "y"}]`, true, order},
		{"the same order", "a varchar", `[{"a": "x"}, {"a": "y"}]`, "a varchar", `[{"a": "x"}, {"a": "y"}]`, true, ""},
		{"more rows", "a varchar", `[{"a": "x"}, {"a": "y"}]`, "a varchar", `[{"a": "x"}]`, false, "The answer has 2 different rows, the verified statement 1 different row."},
		{"no rows", "a varchar", `[]`, "a varchar", `[]`, true, ""},
		{"null is not a word", "a varchar", `[{"a": null}]`, "a varchar", `[{"a": "null"}]`, false, values},
		{"null is not 0", "a bigint", `[{"a": null}]`, "a bigint", `[{"a": 0}]`, false, values},
		{"a number is not its text", "a bigint", `[{"a": 7}]`, "a varchar", `[{"a": "7"}]`, false, values},
		{"case counts", "a varchar", `[{"a": "x"}]`, "a varchar", `[{"a": "X"}]`, false, values},
		{"a long decimal", "a decimal(38,2)", `[{"a": "12345678901234567.10"}]`, "a double", `[{"a": 12345678901234567.1}]`, false, ""},
		{"a date as a timestamp", "a timestamp", `[{"a": "2026-01-02T00:00:00"}]`, "a date", `[{"a": "2026-01-02"}]`, false, ""},
		{"another day", "a date", `[{"a": "2026-01-03"}]`, "a date", `[{"a": "2026-01-02"}]`, false, values},
		{"lists", "a bigint[]", `[{"a": [1, 2]}]`, "a bigint[]", `[{"a": [1,2]}]`, false, ""},
	} {
		gold := read(t, c.goldColumns, c.gold)
		gold.ordered = c.ordered

		outcome, detail := compare(read(t, c.columns, c.got), gold)
		require.Equal(t, c.detail, detail, c.about)
		require.Equal(t, c.detail == "", outcome == Right, c.about)
	}
}

// TestCompareLarge compares as many rows and columns as are compared at all, in bounded time.
func TestCompareLarge(t *testing.T) {
	t.Parallel()

	began := time.Now()
	got, gold := table{width: 8}, table{width: 8}

	for i := range maxRows {
		a, b := make([]cell, 8), make([]cell, 8)
		for j := range a {
			a[j], b[j] = cell{number: float64(i * j), isNumber: true}, cell{number: float64(i*j) + 0.001, isNumber: true}
		}

		got.rows, gold.rows = append(got.rows, a), append(gold.rows, b)
	}

	slices.Reverse(gold.rows)

	outcome, detail := compare(got, gold)
	require.Equal(t, Right, outcome, detail)

	gold.rows[17][3].number += 0.5
	outcome, _ = compare(got, gold)
	require.Equal(t, Wrong, outcome)

	// Many equal columns have many assignments, which are not all tried.
	equal, other := table{width: 12}, table{width: 12}
	for i := range 12 {
		a, b := make([]cell, 12), make([]cell, 12)
		for j := range a {
			a[j], b[j] = cell{text: strconv.Itoa((i + j) % 12)}, cell{text: strconv.Itoa((i * (j + 1)) % 12)}
		}

		equal.rows, other.rows = append(equal.rows, a), append(other.rows, b)
	}

	outcome, _ = compare(equal, other)
	require.Equal(t, Wrong, outcome)
	require.Less(t, time.Since(began), time.Minute)
}

func TestReadTable(t *testing.T) {
	t.Parallel()

	line := json.RawMessage(`{"a": 1}`)
	columns := []query.Column{{Name: "a", Type: "bigint"}}

	_, err := readTable(columns, func() (json.RawMessage, error) { return line, nil })
	require.ErrorIs(t, err, errLarge)

	_, err = readTable(make([]query.Column, maxColumns+1), func() (json.RawMessage, error) { return nil, io.EOF })
	require.ErrorIs(t, err, errLarge)

	_, err = readTable(columns, func() (json.RawMessage, error) { return nil, io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestChange(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		before, now Outcome
		change      Change
	}{
		{"", Right, Fresh},
		{"", "", ""},
		{Right, "", ""},
		{Right, Right, Same},
		{Right, Wrong, Worse},
		{Right, Refused, Worse},
		{Right, FailedToTell, Worse},
		{Refused, AskedBack, Same},
		{Refused, Wrong, Worse},
		{Wrong, Refused, Better},
		{Wrong, Right, Better},
		{FailedToTell, Wrong, Same},
		{FailedToTell, Right, Better},
	} {
		require.Equal(t, c.change, changeOf(c.before, c.now), "%s, %s", c.before, c.now)
	}

	now, before := Result{Outcome: Wrong, Revision: 2, data: "b", meaning: "b"}, Result{Outcome: Right, Revision: 1, data: "a", meaning: "a"}
	of, other := Benchmark{Mode: Model, Model: "b", Release: "b"}, Benchmark{Mode: Model, Model: "a", Release: "a"}

	require.Equal(t, []Cause{CauseQuestion, CauseData, CauseDefinition, CauseModel, CauseRelease}, compareResults(now, of, &before, &other).Why)
	require.Empty(t, compareResults(before, of, &before, &other).Why, "nothing is better or worse")
	require.Empty(t, compareResults(now, of, nil, nil).Why)

	of.Mode, of.Model = Rules, ""
	require.Equal(t, []Cause{CauseMode}, compareResults(Result{Outcome: Wrong}, Benchmark{Mode: Rules}, &Result{Outcome: Right}, &Benchmark{Mode: Model, Model: "a"}).Why)
	require.Empty(t, compareResults(Result{Outcome: Wrong}, of, &Result{Outcome: Right}, &of).Why, "nothing known has changed")
}
