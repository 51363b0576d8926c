package planner_test

import (
	"cmp"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

// testWorld is a set of datasets with the values that a value index would contain.
type testWorld struct {
	name     string
	today    time.Time
	datasets []planner.Dataset
	values   map[string][]place // by key
}

// place is a value and the column that contains it.
type place struct{ dataset, column, value string }

// loadWorld reads the CSV files of a folder and computes their profiles as the service does: types, different values,
// empty cells, limits, frequent values, keys and joins.
func loadWorld(tb testing.TB, folder string, today time.Time) *testWorld {
	tb.Helper()

	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	require.NoError(tb, err)
	require.NotEmpty(tb, files, folder)

	w := &testWorld{name: filepath.Base(folder), today: today, values: map[string][]place{}}
	cells := map[string]map[string]map[string]bool{} // by dataset and column

	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".csv")
		d, seen := profile(name, readCSV(tb, file))
		cells[name] = seen
		w.datasets = append(w.datasets, d)
		w.index(&w.datasets[len(w.datasets)-1], seen)
	}

	w.join(cells)

	for i := range w.datasets {
		w.datasets[i].Meaning = meaning.Draft(w.datasets[i].Source)
	}

	return w
}

func readCSV(tb testing.TB, file string) [][]string {
	tb.Helper()

	f, err := os.Open(filepath.Clean(file))
	require.NoError(tb, err)

	defer func() { require.NoError(tb, f.Close()) }()

	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(tb, err)

	return rows
}

func profile(name string, rows [][]string) (planner.Dataset, map[string]map[string]bool) {
	d := planner.Dataset{Source: meaning.Source{Name: name, Rows: int64(len(rows) - 1)}}
	all := map[string]map[string]bool{}

	for at, column := range rows[0] {
		counts := map[string]int{}
		c := meaning.SourceColumn{Name: column}

		for _, row := range rows[1:] {
			if row[at] == "" {
				c.Nulls++
			} else {
				counts[row[at]]++
			}
		}

		c.Distinct = int64(len(counts))
		c.Type = typeOf(counts)
		all[column] = map[string]bool{}

		for v := range counts {
			all[column][v] = true
			c.Values = append(c.Values, typed(c.Type, v))
		}

		slices.SortFunc(c.Values, compareValues)
		c.Min, c.Max = c.Values[0], c.Values[len(c.Values)-1]
		slices.SortStableFunc(c.Values, func(a, b any) int { return cmp.Compare(counts[written(b)], counts[written(a)]) })
		c.Values = c.Values[:min(len(c.Values), 50)]

		if c.Distinct == d.Rows && (c.Type == "varchar" || c.Type == "bigint") {
			d.Keys = append(d.Keys, []string{column})
		}

		d.Columns = append(d.Columns, c)
	}

	return d, all
}

func typeOf(counts map[string]int) string {
	fits := func(is func(string) bool) bool {
		for v := range counts {
			if !is(v) {
				return false
			}
		}

		return true
	}

	switch {
	case fits(func(v string) bool { _, err := strconv.ParseInt(v, 10, 64); return err == nil }):
		return "bigint"
	case fits(func(v string) bool { _, err := strconv.ParseFloat(v, 64); return err == nil }):
		return "double"
	case fits(func(v string) bool { return v == "true" || v == "false" }):
		return "boolean"
	case fits(func(v string) bool { _, err := time.Parse(time.DateOnly, v); return err == nil }):
		return "date"
	default:
		return "varchar"
	}
}

func typed(kind, cell string) any {
	switch kind {
	case "bigint", "double":
		n, _ := strconv.ParseFloat(cell, 64)

		return n
	case "boolean":
		return cell == "true"
	default:
		return cell
	}
}

func written(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		text, _ := v.(string)

		return text
	}
}

func compareValues(a, b any) int {
	x, isNumber := a.(float64)
	y, also := b.(float64)

	if isNumber && also {
		return cmp.Compare(x, y)
	}

	return cmp.Compare(written(a), written(b))
}

// index adds the values of the text columns, and the rows that are sums of others.
func (w *testWorld) index(d *planner.Dataset, cells map[string]map[string]bool) {
	for _, c := range d.Columns {
		if c.Type != "varchar" {
			continue
		}

		for v := range cells[c.Name] {
			if key := lexicon.Key(v); key != "" {
				w.values[key] = append(w.values[key], place{d.Name, c.Name, v})
			}

			if v == "Total" {
				d.Totals = append(d.Totals, planner.Match{Dataset: d.Name, Column: c.Name, Value: v})
			}
		}
	}
}

// join adds the columns whose values all occur in the key of another dataset.
func (w *testWorld) join(cells map[string]map[string]map[string]bool) {
	for i := range w.datasets {
		d := &w.datasets[i]

		for _, c := range d.Columns {
			for _, other := range w.datasets {
				for _, key := range other.Keys {
					if other.Name != d.Name && contains(cells[other.Name][key[0]], cells[d.Name][c.Name]) {
						d.Joins = append(d.Joins, meaning.SourceJoin{Column: c.Name, To: other.Name, Key: key[0], Share: 1, IsKey: true})
					}
				}
			}
		}
	}
}

func contains(all, some map[string]bool) bool {
	for v := range some {
		if !all[v] {
			return false
		}
	}

	return len(some) > 0
}

// matches returns the values that words of a question mean, as the value index does: the same text, the same without
// case and signs, or another ending. Stop words match only values with the same spelling.
func (w *testWorld) matches(question string) (list []planner.Match) {
	words := slices.Collect(lexicon.KeyWords(question))

	for from := range words {
		for to := from + 1; to <= min(len(words), from+5); to++ {
			start, end := words[from].Start, words[to-1].End
			text := question[start:end]
			key := lexicon.Key(text)
			found := w.values[key]

			if len(found) == 0 && !lexicon.IsStop(key) {
				for _, other := range lexicon.OtherEndings(key) {
					found = append(found, w.values[other]...)
				}
			}

			for _, p := range found {
				if lexicon.IsStop(key) && (p.value != text || text == key) {
					continue
				}

				list = append(list, planner.Match{Dataset: p.dataset, Column: p.column, Value: p.value, Start: start, End: end, Score: 0.92})
			}
		}
	}

	slices.SortStableFunc(list, func(a, b planner.Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Dataset, b.Dataset), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Value, b.Value))
	})

	return list
}

func (w *testWorld) request(question string) planner.Request {
	return planner.Request{Question: question, Today: w.today, Datasets: w.datasets, Matches: w.matches(question)}
}

func (w *testWorld) ask(question string) planner.Plan { return planner.Make(w.request(question)) }

// others returns the other values of a column.
func (w *testWorld) others(dataset, column, value string) (list []string) {
	for _, d := range w.datasets {
		for _, c := range d.Columns {
			if d.Name != dataset || c.Name != column {
				continue
			}

			for _, v := range c.Values {
				if text := written(v); text != value {
					list = append(list, text)
				}
			}
		}
	}

	return list
}

// june returns the day on which the questions are asked.
func june() time.Time { return time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC) }

// worlds returns the worlds of testdata: a shop whose datasets belong together, staff, a hotel with wide and separate
// datasets, and a car hire with abbreviated names.
func worlds(tb testing.TB) []*testWorld {
	tb.Helper()

	var list []*testWorld
	for _, name := range []string{"shop", "staff", "hotel", "hire"} {
		list = append(list, loadWorld(tb, "testdata/"+name, june()))
	}

	return list
}
