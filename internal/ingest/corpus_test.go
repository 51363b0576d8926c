package ingest_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// reader ingests the files of one case with the options of the API and returns the outcome. It allows corpusUnpacked
// bytes for each unpacked file; all other limits are the defaults of the service.
type reader func(t *testing.T, files []string, options json.RawMessage) outcome

const corpusUnpacked = 256 << 20

type outcome struct {
	Columns  []column
	Rows     [][]any // nil, bool, string or json.Number; nested values as JSON text
	SetAside []setAside
	Doubts   []doubt
	Fault    *failure
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type setAside struct {
	Row    int64
	Reason string
}

type doubt struct {
	Column  string
	Option  string
	Message string
}

type failure struct {
	Code    string
	Message string
}

// expected is the content of expected.json: the required outcome of a case. Values are written as in the API; a
// nested value is written as JSON.
type expected struct {
	About    string          `json:"about"`
	Options  json.RawMessage `json:"options,omitempty"`
	Columns  []column        `json:"columns"`
	Rows     json.RawMessage `json:"rows"` // all rows, or a summary
	SetAside []struct {
		Row            int64  `json:"row"`
		ReasonContains string `json:"reasonContains"`
	} `json:"setAside"`
	Doubts []expectedDoubt `json:"doubts"`
	Fault  *struct {
		Code     string `json:"code"`
		Contains string `json:"contains"`
	} `json:"fault"`
}

type expectedDoubt struct {
	Column   string `json:"column"`
	Option   string `json:"option"`   // empty matches any option
	Contains string `json:"contains"` // empty matches any message
	Optional bool   `json:"optional"` // allowed, not required
}

// summary replaces rows that are too many to list.
type summary struct {
	Count int                    `json:"count"`
	Sums  map[string]json.Number `json:"sums"`
}

type corpusCase struct {
	name  string
	files []corpusFile
	want  expected
}

type corpusFile struct {
	name    string
	content func(tb testing.TB) []byte
}

func TestCorpus(t *testing.T) {
	t.Parallel()

	read := openReader(t)

	for _, one := range corpus(t) {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()

			var files []string

			for _, file := range one.files {
				path := filepath.Join(dir, file.name)
				require.NoError(t, os.WriteFile(path, file.content(t), 0o600))

				files = append(files, path)
			}

			one.want.check(t, read(t, files, one.want.Options))
		})
	}
}

// TestCorpusIsWellFormed checks the corpus itself: every case has a description and either a fault or columns.
func TestCorpusIsWellFormed(t *testing.T) {
	t.Parallel()

	names := map[string]bool{}

	for _, one := range corpus(t) {
		require.False(t, names[one.name], "two cases are called %s", one.name)
		names[one.name] = true

		want := one.want
		require.NotEmpty(t, want.About, one.name)
		require.NotEmpty(t, one.files, one.name)
		require.NotEqual(t, want.Fault == nil, want.Columns == nil, "%s: columns or a fault", one.name)
		require.Equal(t, want.Columns == nil, want.Rows == nil, "%s: columns have rows", one.name)

		for _, column := range want.Columns {
			require.Regexp(t, `^(boolean|bigint|double|decimal\(\d+,\d+\)|date|timestamp|time|varchar|json)$`, column.Type, one.name)
			require.LessOrEqual(t, len(column.Name), 255, one.name)
		}

		for _, row := range want.rows(t) {
			require.Len(t, row, len(want.Columns), one.name)

			for i, cell := range row {
				canonical(t, want.Columns[i].Type, cell, false)
			}
		}
	}

	require.Greater(t, len(names), 190)
}

func (want expected) check(t *testing.T, got outcome) {
	t.Helper()

	if want.Fault != nil {
		require.NotNil(t, got.Fault, "expected a fault; read %v", got.Columns)
		require.Equal(t, want.Fault.Code, got.Fault.Code, got.Fault.Message)
		require.Contains(t, strings.ToLower(got.Fault.Message), strings.ToLower(want.Fault.Contains))
		require.True(t, utf8.ValidString(got.Fault.Message) && len(got.Fault.Message) < 1000, "a message for people: %q", got.Fault.Message)

		return
	}

	require.Nil(t, got.Fault)
	require.Equal(t, want.Columns, got.Columns)
	want.checkRows(t, got)
	want.checkDoubts(t, got.Doubts)

	require.Len(t, got.SetAside, len(want.SetAside), "%v", got.SetAside)

	for i, aside := range want.SetAside {
		require.Equal(t, aside.Row, got.SetAside[i].Row)
		require.Contains(t, strings.ToLower(got.SetAside[i].Reason), strings.ToLower(aside.ReasonContains))
		require.Less(t, len(got.SetAside[i].Reason), 250, "a reason quotes little of the value")
	}
}

func (want expected) checkRows(t *testing.T, got outcome) {
	t.Helper()

	if sums := want.summary(t); sums != nil {
		require.Len(t, got.Rows, sums.Count)

		for name, sum := range sums.Sums {
			at := slices.IndexFunc(want.Columns, func(c column) bool { return c.Name == name })
			require.Equal(t, number(t, sum).RatString(), total(t, got.Rows, at).RatString(), "sum of %s", name)
		}

		return
	}

	rows := want.rows(t)
	require.Len(t, got.Rows, len(rows), "%v", got.Rows)

	for i, row := range rows {
		require.Len(t, got.Rows[i], len(row))

		for j, cell := range row {
			kind := want.Columns[j].Type
			require.Equal(t, canonical(t, kind, cell, false), canonical(t, kind, got.Rows[i][j], true), "row %d, column %s", i+1, want.Columns[j].Name)
		}
	}
}

// checkDoubts compares the doubts. It accepts any doubt about the header, because many files do not show whether they
// have one, and a preview may say which rows a load sets aside.
func (want expected) checkDoubts(t *testing.T, got []doubt) {
	t.Helper()

	open := slices.Clone(want.Doubts)

	for _, doubt := range got {
		require.NotEmpty(t, doubt.Message)

		at := slices.IndexFunc(open, func(e expectedDoubt) bool {
			return e.Column == doubt.Column && (e.Option == "" || e.Option == doubt.Option) && strings.Contains(doubt.Message, e.Contains)
		})

		switch {
		case at >= 0:
			open = slices.Delete(open, at, at+1)
		case doubt.Option == "header", len(want.SetAside) > 0 && strings.Contains(doubt.Message, "would be set aside"):
		default:
			require.Fail(t, "a doubt that nobody has", "%+v", doubt)
		}
	}

	for _, missing := range open {
		require.True(t, missing.Optional, "no doubt: %+v in %+v", missing, got)
	}
}

func (want expected) rows(tb testing.TB) [][]any {
	tb.Helper()

	if want.Rows == nil || want.summary(tb) != nil {
		return nil
	}

	var rows [][]any

	decode(tb, want.Rows, &rows)

	return rows
}

func (want expected) summary(tb testing.TB) *summary {
	tb.Helper()

	if !bytes.HasPrefix(want.Rows, []byte("{")) {
		return nil
	}

	var sums summary

	decode(tb, want.Rows, &sums)

	return &sums
}

// canonical makes two notations of one value equal, such as 1.50 and 1.5, or a blank and a T in a timestamp.
func canonical(tb testing.TB, kind string, value any, nestedAsText bool) any {
	tb.Helper()

	if value == nil {
		return nil
	}

	text, isText := value.(string)
	digits, isNumber := value.(json.Number)

	if isNumber {
		text = digits.String()
	}

	switch {
	case kind == "boolean":
		require.IsType(tb, true, value)

		return value
	case kind == "json" && nestedAsText:
		require.True(tb, isText, "nested values are JSON text: %v", value)

		var nested any

		decode(tb, []byte(text), &nested)

		return nested
	case kind == "json":
		return value
	case kind == "double":
		x, err := strconv.ParseFloat(text, 64)
		require.NoError(tb, err)

		return strconv.FormatFloat(x, 'g', -1, 64)
	case kind == "bigint":
		_, err := strconv.ParseInt(text, 10, 64)
		require.NoError(tb, err)

		return text
	case strings.HasPrefix(kind, "decimal"):
		return number(tb, json.Number(text)).RatString()
	}

	require.True(tb, isText, "a %s is text: %v", kind, value)

	if kind == "timestamp" || kind == "time" {
		text = strings.TrimSuffix(strings.Replace(text, " ", "T", 1), "Z")

		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
	}

	return text
}

func total(tb testing.TB, rows [][]any, at int) *big.Rat {
	tb.Helper()

	sum := new(big.Rat)

	for _, row := range rows {
		if row[at] != nil {
			digits, isNumber := row[at].(json.Number)
			require.True(tb, isNumber, "%v", row[at])
			sum.Add(sum, number(tb, digits))
		}
	}

	return sum
}

func number(tb testing.TB, digits json.Number) *big.Rat {
	tb.Helper()

	value, isNumber := new(big.Rat).SetString(digits.String())
	require.True(tb, isNumber, "%q", digits)

	return value
}

func decode(tb testing.TB, text []byte, into any) {
	tb.Helper()

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(tb, decoder.Decode(into), "%s", text)
}

// corpus returns the cases of testdata/corpus and those that the tests make.
func corpus(tb testing.TB) []corpusCase {
	tb.Helper()

	var (
		all    []corpusCase
		stored = filepath.Join("testdata", "corpus")
	)

	folders, err := os.ReadDir(stored)
	require.NoError(tb, err)

	for _, folder := range folders {
		if folder.IsDir() {
			all = append(all, storedCase(tb, filepath.Join(stored, folder.Name())))
		}
	}

	return slices.Concat(all, packedCases(tb, all), madeCases(), parquetCases())
}

func storedCase(tb testing.TB, dir string) corpusCase {
	tb.Helper()

	one := corpusCase{name: filepath.Base(dir)}

	entries, err := os.ReadDir(dir)
	require.NoError(tb, err)

	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(tb, err)

		if entry.Name() != "expected.json" {
			one.files = append(one.files, corpusFile{name: entry.Name(), content: fixed(content)})

			continue
		}

		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		require.NoError(tb, decoder.Decode(&one.want), dir)
	}

	return one
}

func fixed(content []byte) func(testing.TB) []byte {
	return func(testing.TB) []byte { return content }
}

// expect parses the required outcome of a made case from the notation of expected.json.
func expect(about, text string) expected {
	var want expected

	if err := json.Unmarshal([]byte(text), &want); err != nil {
		panic(about + ": " + err.Error())
	}

	want.About = about

	return want
}

// seeds returns every small file of the corpus, for the fuzz targets.
func seeds(tb testing.TB) [][]byte {
	tb.Helper()

	var all [][]byte

	for _, one := range corpus(tb) {
		if large()[one.name] {
			continue
		}

		for _, file := range one.files {
			if content := file.content(tb); len(content) <= 64<<10 {
				all = append(all, content)
			}
		}
	}

	return all
}

func TestSeeds(t *testing.T) {
	t.Parallel()

	require.Greater(t, len(seeds(t)), 170)
}
