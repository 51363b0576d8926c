package lake

import (
	"strconv"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDecimal(t *testing.T) {
	t.Parallel()

	for text, valid := range map[Type]bool{
		"decimal(1,0)": true, "decimal(38,38)": true, "decimal(39,0)": false, "decimal(0,0)": false, "decimal(5,6)": false, "decimal(5,-1)": false,
		"decimal(05,1)": false, "decimal(5,1": false, "decimal(5)": false, "decimal": false, "decimal(,)": false, "decimal(5,1)x": false,
		Bigint: true, JSON: true, "int": false, "": false, "BIGINT": false,
	} {
		require.Equal(t, valid, text.Valid(), text)
	}

	require.Equal(t, Decimal(38, 2), Decimal(38, 2).holding(Decimal(38, 0)), "no more than there can be")
	require.Equal(t, Decimal(12, 2), Decimal(5, 2).holding(Decimal(14, 4)))
	require.Equal(t, Bigint, Bigint.holding(Decimal(14, 4)))
}

// TestIdentity checks that, in any sequence of plans, commits, abandoned plans, replacements and restores, an id
// always means one name and one type, and no schema has an id or a name twice.
func TestIdentity(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		var (
			current, given []Column
			last           int
			history        = [][]Column{nil}
			pending        []struct {
				columns []Column
				mode    Mode
			}
			meaning = map[int]Column{}
		)

		want := rapid.Custom(func(t *rapid.T) []Column {
			var columns []Column

			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names") {
				kind := rapid.SampledFrom([]Type{Bigint, Varchar, Decimal(5, 2), Decimal(9, 2), Decimal(9, 3)}).Draw(t, "type")
				columns = append(columns, Column{Name: name, Type: kind})
			}

			return columns
		})

		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				mode := rapid.SampledFrom([]Mode{Append, Replace}).Draw(t, "mode")

				var planned []Column

				planned, given, last = assign(current, given, want.Draw(t, "want"), last, mode)
				pending = append(pending, struct {
					columns []Column
					mode    Mode
				}{planned, mode})
			case 2:
				if len(pending) == 0 {
					continue
				}

				i := rapid.IntRange(0, len(pending)-1).Draw(t, "which")
				base := current

				if pending[i].mode == Replace {
					base = nil
				}

				merged, err := merge(base, pending[i].columns)
				if err != nil {
					require.Equal(t, Append, pending[i].mode)

					continue
				}

				current = merged
				history = append(history, current)
			case 3:
				current = rapid.SampledFrom(history).Draw(t, "restored")
			}

			names := map[string]bool{}
			ids := map[int]bool{}

			for _, c := range current {
				require.False(t, ids[c.ID] || names[c.key()], "twice: %v", current)
				ids[c.ID], names[c.key()] = true, true

				before, met := meaning[c.ID]
				if !met {
					before = c
				}

				wide, fits := before.Type.wider(c.Type)
				require.True(t, fits && before.key() == c.key(), "%v was %v", c, before)

				meaning[c.ID] = Column{ID: c.ID, Name: c.Name, Type: wide}
			}
		}
	})
}

// TestWideTable covers a table of five thousand columns.
func TestWideTable(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()

	want := make([]Column, 5000)
	for i := range want {
		want[i] = Column{Name: "column " + strconv.Itoa(i), Type: Bigint}
	}

	p.add(at, Append, 0, 2, want...)
	want[4999].Name = "another"
	made := p.add(at, Append, 2, 2, want...)
	require.Len(t, made.Columns, 5001)

	rows, seen := p.scan(at, table.WithSelectedFields("column 4000", "another"))
	require.Equal(t, int64(4), rows)
	require.Equal(t, column{"int64", 4, 0, 6}, seen["column 4000"])
	require.Equal(t, column{"int64", 2, 2, 5}, seen["another"])
	require.Equal(t, 5001, made.Columns[5000].ID)
}
