package query

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// TestListingBounds checks that a listing that is too large is refused, and that one with a limit ends early.
func TestListingBounds(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		datasets int
		rows     int64
		taken    int
		isCut    bool
	}{
		{0, 0, 0, false},
		{maxInfoDatasets, 0, maxInfoDatasets, false},
		{maxInfoDatasets + 1, 0, maxInfoDatasets, true},
		{5 * maxInfoDatasets, 0, maxInfoDatasets, true},
		{5 * maxInfoDatasets, 3, 3, false},
		{5 * maxInfoDatasets, maxInfoDatasets + 1, maxInfoDatasets + 1, false},
	} {
		left, taken := c.datasets, 0
		l := listing{rows: c.rows}

		err := l.each(func() ([]catalog.Item, bool, error) {
			page := min(left, infoPage)
			left -= page

			return make([]catalog.Item, page), left > 0, nil
		}, func(catalog.Item) (bool, error) {
			taken++

			return l.rows == 0 || int64(taken) < l.rows, nil
		})

		require.Equal(t, c.isCut, fault.Is(err, fault.LimitExceeded), "%+v: %v", c, err)
		require.Equal(t, c.taken, taken, "%+v", c)
	}

	absent := func() ([]catalog.Item, bool, error) { return nil, false, fault.Absent() }
	require.True(t, fault.Is((&listing{}).each(absent, nil), fault.NotFound))
	require.NoError(t, (&listing{mayLack: true}).each(absent, nil))

	w := infoWriter{kind: infoColumns, out: bufio.NewWriter(&bytes.Buffer{}), rows: maxInfoRows - 1}
	wide := catalog.Item{Dataset: catalog.Dataset{Columns: make([]catalog.Column, 2)}}
	require.True(t, fault.Is(w.add(wide), fault.LimitExceeded))
}

// TestListed checks which namespace a statement selects, if any.
func TestListed(t *testing.T) {
	t.Parallel()

	known := trees(t, "allowed")

	s := checked(t, known, "SELECT tables.table_name, information_schema.tables.table_name FROM information_schema.tables WHERE table_catalog = 'ada' AND 'shop' = table_schema")
	require.Equal(t, &catalog.Path{Username: "ada", Namespace: "shop"}, s.listed())

	s = checked(t, known, "SELECT * FROM INFORMATION_SCHEMA.COLUMNS LIMIT 5")
	require.Nil(t, s.listed())

	rows, isLimited := s.firstRows()
	require.True(t, isLimited)
	require.EqualValues(t, 5, rows)

	for text, want := range map[string]show{
		"SHOW TABLES": {}, "SHOW ALL TABLES": {isAll: true}, "SHOW TABLES FROM shop": {namespace: "shop"}, "SHOW TABLES FROM ada.shop": {owner: "ada", namespace: "shop"},
	} {
		require.Equal(t, &want, checked(t, known, text).show, text)
	}

	require.Nil(t, checked(t, known, "DESCRIBE orders").show)
}

func TestExplained(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"EXPLAIN SELECT 1": "        SELECT 1", " /* x */ explain\nFROM t": " /* x */        \nFROM t", "EXPLAIN (SELECT 1)": "        (SELECT 1)", "EXPLAIN": "       ",
		"SELECT 1": "SELECT 1", `"explain"`: `"explain"`, "": "", "EXPLAINED": "EXPLAINED",
	} {
		one := Statement{Text: text, Form: Rows}
		got, err := explained(&one)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, got != text, one.Explain, text)
	}

	_, err := explained(&Statement{Text: "EXPLAIN SELECT 1", Form: CSV})
	require.True(t, fault.Is(err, fault.NotAcceptable))

	for _, text := range []string{"EXPLAIN ANALYZE SELECT 1", "explain (analyze) select 1", "EXPLAIN (FORMAT json) SELECT 1"} {
		_, err := explained(&Statement{Text: text, Form: Rows})
		require.True(t, fault.Is(err, fault.QueryInvalid), text)
	}
}
