package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWideTable checks that a table with many columns returns the same values as statements over single columns, with the
// provenance of each row.
func TestWideTable(t *testing.T) {
	t.Parallel()

	const columns = 300

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	var names, first, second []string

	for i := range columns {
		names = append(names, fmt.Sprintf("c%d", i))
		first = append(first, []string{strconv.Itoa(i), fmt.Sprintf(`"say ""%d"""`, i), "2026-01-31", "0.5", "true", "9007199254740993", "2026-01-31 10:00:00"}[i%7])
		second = append(second, "")
	}

	second[0] = "7"
	d.loaded("", strings.Join(names, ",")+"\n"+strings.Join(first, ",")+"\n"+strings.Join(second, ",")+"\n")

	found := d.result(`FROM orders`, "")
	require.Len(t, found.Columns, columns)
	require.Len(t, found.Data, 2)

	for i, want := range []any{0.0, `say "1"`, "2026-01-31", 0.5, true, "9007199254740993", "2026-01-31T10:00:00"} {
		require.Equal(t, want, found.Data[0][fmt.Sprintf("c%d", i)], found.Columns[i].Type)
		require.Equal(t, d.result(fmt.Sprintf(`SELECT c%d FROM orders`, i), "").Data[0][fmt.Sprintf("c%d", i)], found.Data[0][fmt.Sprintf("c%d", i)])
	}

	require.EqualValues(t, 7, found.Data[1]["c0"])
	require.Nil(t, found.Data[1]["c1"])

	require.Contains(t, fmt.Sprint(found.Data[0]["__metadata"]), "row:1")
	require.Contains(t, fmt.Sprint(found.Data[1]["__metadata"]), "row:2")
	require.Equal(t, found.Data, d.preview("").Data)
}
