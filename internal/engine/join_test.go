package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJoin(t *testing.T) {
	t.Parallel()

	column := func(name, kind string) Column { return Column{Name: name, Type: kind} }
	files := [][]Column{
		{column("id", Bigint), column("day", Date), column("empty", ""), column("price", "decimal(9,2)"), column("late", "")},
		{column("Day", Timestamp), column("ID", Double), column("price", "decimal(6,4)"), column("late", Boolean)},
		{column("new", JSON), column("id", Bigint), column("day", Date), column("late", ""), column("empty", "")},
		{column("price", Bigint)},
	}
	want := []Column{
		column("id", Double), column("day", Timestamp), column("empty", ""), column("price", Varchar), column("late", Boolean), column("new", JSON),
	}

	var joined []Column
	for _, columns := range files {
		joined = Join(joined, columns)
	}

	require.Equal(t, want, joined)
	require.Equal(t, []Column{column("price", "decimal(11,4)")}, Join(Join(nil, files[0][3:4]), files[1][2:3]))
	require.Equal(t, []Column{column("a", Varchar)}, Join(Join(nil, []Column{column("a", "decimal(38,0)")}), []Column{column("a", "decimal(38,38)")}))
}
