package agent

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/query"
)

// resultOf returns a table whose columns are named a, b, c and so on.
func resultOf(rows ...[]any) (t table) {
	for _, row := range rows {
		object := map[string]any{"__metadata": map[string]int{"score": 1}}

		for i, value := range row {
			name := string(rune('a' + i))
			object[name] = value

			if len(t.columns) <= i {
				t.columns = append(t.columns, query.Column{Name: name})
			}
		}

		content, _ := json.Marshal(object)
		t.rows = append(t.rows, content)
	}

	return t
}

func TestSameTable(t *testing.T) {
	t.Parallel()

	type row = []any

	for name, one := range map[string]struct {
		a, b    table
		isShare bool
		same    bool
	}{
		"a number":                   {a: resultOf(row{67}), b: resultOf(row{67}), same: true},
		"another number":             {a: resultOf(row{67}), b: resultOf(row{68})},
		"rounded":                    {a: resultOf(row{12.35}), b: resultOf(row{12.3456789}), same: true},
		"rounded otherwise":          {a: resultOf(row{12.36}), b: resultOf(row{12.3456789})},
		"whole and not":              {a: resultOf(row{12}), b: resultOf(row{12.6})},
		"a number as text":           {a: resultOf(row{"1,470"}), b: resultOf(row{1470}), same: true},
		"no value":                   {a: resultOf(row{nil}), b: resultOf(row{nil}), same: true},
		"no value and none":          {a: resultOf(row{nil}), b: resultOf(row{0})},
		"a month":                    {a: resultOf(row{"2026-02"}), b: resultOf(row{"2026-02-01"}), same: true},
		"midnight":                   {a: resultOf(row{"2026-02-03T00:00:00Z"}), b: resultOf(row{"2026-02-03"}), same: true},
		"another day":                {a: resultOf(row{"2026-02-03"}), b: resultOf(row{"2026-02-04"})},
		"another order":              {a: resultOf(row{"n", 1}, row{"s", 2}), b: resultOf(row{2, "S"}, row{1, "N"}), same: true},
		"fewer columns":              {a: resultOf(row{"north"}), b: resultOf(row{100, "north"}), same: true},
		"the same columns, crossed":  {a: resultOf(row{"n", 1}, row{"s", 2}), b: resultOf(row{"n", 2}, row{"s", 1})},
		"more rows":                  {a: resultOf(row{"n"}), b: resultOf(row{"n"}, row{"s"})},
		"no rows":                    {a: table{columns: []query.Column{{Name: "a"}}}, b: table{columns: []query.Column{{Name: "b"}}}, same: true},
		"a share":                    {a: resultOf(row{0.125}), b: resultOf(row{12.5}), isShare: true, same: true},
		"no share":                   {a: resultOf(row{0.125}), b: resultOf(row{12.5})},
		"rows that are there twice":  {a: resultOf(row{1}, row{1}, row{2}), b: resultOf(row{1}, row{2}, row{2})},
		"columns that are the same":  {a: resultOf(row{1, 1}, row{2, 1}), b: resultOf(row{1, 2}, row{1, 1}), same: true},
		"a column that is not there": {a: resultOf(row{"n", 1}), b: resultOf(row{"n", 2, 3})},
	} {
		for _, pair := range [][2]table{{one.a, one.b}, {one.b, one.a}} {
			same, ok := sameTable(pair[0], pair[1], one.isShare)
			require.True(t, ok, name)
			require.Equal(t, one.same, same, name)
		}
	}
}

// TestSameTableIsShort checks that a comparison that would take too long is not completed.
func TestSameTableIsShort(t *testing.T) {
	t.Parallel()

	var a, b [][]any

	for i := range comparedRows {
		ones := []any{1, 1, 1, 1, 1, 1}
		a, b = append(a, ones), append(b, append([]any{strconv.Itoa(i)}, ones...))
	}

	same, _ := sameTable(resultOf(a...), resultOf(b...), false)
	require.True(t, same, "six of them are")

	for i := range 6 { // each column contains one 2
		a[i] = []any{1, 1, 1, 1, 1, 1}
		a[i][i], b[i/2][i+1] = 2, 2
	}

	_, ok := sameTable(resultOf(a...), resultOf(b...), false)
	require.False(t, ok, "there are too many ways")

	a[9][5] = 7
	same, ok = sameTable(resultOf(a...), resultOf(b...), false)
	require.True(t, ok && !same, "one is found nowhere")

	wide := resultOf([]any{1, 2, 3, 4, 5, 6, 7})
	_, ok = sameTable(wide, wide, false)
	require.False(t, ok)
}
