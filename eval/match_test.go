package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cell decodes a value as a set contains it.
func cell(t *testing.T, text string) any {
	t.Helper()

	var read any

	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&read))

	return read
}

func TestSame(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1.0`, true},
		{`1`, `2`, false},
		{`1.001`, `1.005`, true},
		{`1.001`, `1.007`, false},
		{`1000000`, `1000000.9`, true},
		{`1000000`, `1000001.1`, false},
		{`"1,470"`, `1470`, true},
		{`"1,47"`, `147`, false},
		{`"1,470"`, `"1470"`, true},
		{`"-3.5"`, `-3.5`, true},
		{`"12%"`, `12`, true},
		{`"83 years"`, `83`, true},
		{`"83 years"`, `"83"`, true},
		{`"83 years"`, `"83 months"`, false},
		{`"83 years"`, `84`, false},
		{`"1985-86"`, `1985`, false},
		{`"3rd"`, `3`, false},
		{`"."`, `0`, false},
		{`" Hailin   City"`, `"hailin city"`, true},
		{`"ﬁve"`, `"FIVE"`, true},
		{`"Hailin"`, `"Hailin City"`, false},
		{`"2018-01-01"`, `"2018-01-01 00:00:00"`, true},
		{`"2018-01-01"`, `"2018-01-01T00:00:00Z"`, true},
		{`"2018-01-01"`, `"2018-01-01 00:00:01"`, false},
		{`"2018-01-01 10:00:00"`, `"2018-01-01T10:00:00"`, true},
		{`"2069-05-20"`, `"May 20, 2069"`, true},
		{`"xxxx-09-xx"`, `"September"`, true},
		{`"xxxx-09-xx"`, `"2004-09-01"`, false},
		{`"2004-09-xx"`, `"september 2004"`, true},
		{`{"interval_seconds": 6560}`, `"01:49:20"`, true},
		{`{"interval_seconds": 93600}`, `"1 day 02:00:00"`, true},
		{`{"interval_seconds": -60}`, `"-00:01:00"`, true},
		{`{"interval_seconds": 6560}`, `"01:49:21"`, false},
		{`{"interval_seconds": 0}`, `""`, false},
		{`null`, `null`, true},
		{`null`, `""`, false},
		{`null`, `0`, false},
		{`true`, `true`, true},
		{`true`, `false`, false},
		{`true`, `"TRUE"`, true},
		{`"2004"`, `2004`, true},
	} {
		a, b := readValue(cell(t, c.a)), readValue(cell(t, c.b))
		require.Equal(t, c.same, a.same(b), "%s and %s", c.a, c.b)
		require.Equal(t, c.same, b.same(a), "%s and %s", c.b, c.a)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		about     string
		got, gold string // rows; the columns have no names
		ordered   bool
		match     bool
	}{
		{"the same", `[[1, "a"]]`, `[[1, "a"]]`, false, true},
		{"rows in another order", `[[2], [1]]`, `[[1], [2]]`, false, true},
		{"rows in another order, and it counts", `[[2], [1]]`, `[[1], [2]]`, true, false},
		{"rows in order", `[[1], [2]]`, `[[1], [2]]`, true, true},
		{"columns in another order", `[["a", 1], ["b", 2]]`, `[[1, "a"], [2, "b"]]`, true, true},
		{"columns that do not belong together", `[["a", 2], ["b", 1]]`, `[[1, "a"], [2, "b"]]`, false, false},
		{"more columns", `[[9, "a", 1], [9, "b", 2]]`, `[["a"], ["b"]]`, true, true},
		{"fewer columns", `[["a"], ["b"]]`, `[[1, "a"], [2, "b"]]`, false, false},
		{"repeated rows", `[[1], [1], [2]]`, `[[1], [2], [2]]`, true, true},
		{"repeated without another column", `[[1, "a"], [1, "b"]]`, `[[1]]`, true, true},
		{"more rows", `[[1], [2], [3]]`, `[[1], [2]]`, false, false},
		{"fewer rows", `[[1]]`, `[[1], [2]]`, false, false},
		{"one column for two of gold", `[[1]]`, `[[1, 1]]`, false, false},
		{"two columns alike", `[[1, 1, 5]]`, `[[5, 1, 1]]`, false, true},
		{"a choice that must be taken back", `[[1, 2], [2, 1], [3, 3]]`, `[[2, 1], [1, 2], [3, 3]]`, true, true},
		{"none of none", `[]`, `[]`, false, true},
		{"some of none", `[[1]]`, `[]`, false, false},
	} {
		require.Equal(t, c.match, matches(rows(t, c.got), rows(t, c.gold), c.ordered), c.about)
	}
}

func rows(t *testing.T, text string) cells {
	t.Helper()

	var set resultSet

	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&set.Rows))

	if len(set.Rows) > 0 {
		set.Columns = make([]string, len(set.Rows[0]))
	}

	return readCells(set)
}
