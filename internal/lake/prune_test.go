package lake

import (
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

// TestPruneRandom checks that no file is dropped that has a row matching the conditions, and that many files without
// such a row are dropped.
func TestPruneRandom(t *testing.T) {
	t.Parallel()

	const (
		files = 40
		tries = 1000
	)

	var (
		p, at  = newPlace(t), newTable()
		random = newRandom(t)
		rows   = map[uuid.UUID][][]any{}
		dir    = t.TempDir()
		want   = everyType()
	)

	for i := range want {
		want[i].ID = 0
	}

	columns, err := p.Plan(t.Context(), at, want, Append)
	require.NoError(t, err)

	var ingestions []uuid.UUID

	for n := range files {
		source := Source{File: uuid.New()}
		groups := randomGroups(random, columns)
		rows[source.File] = slices.Concat(groups...)
		path := filepath.Join(dir, strconv.Itoa(n))
		require.NoError(t, os.WriteFile(path, parquetRows(t, columns, groups...), 0o600))

		ingestion, err := stageFrom(t.Context(), p.Lake, at, columns, path, source)
		require.NoError(t, err)

		ingestions = append(ingestions, ingestion)
	}

	p.commit(Change{Table: at, Mode: Append, Ingestions: ingestions})

	_, all := p.current(at)
	require.Len(t, all, files)

	pruned := map[Type]int{}

	for range tries {
		conditions := make([]Condition, 1+random.IntN(2))
		for i := range conditions {
			c := columns[random.IntN(len(columns))]
			conditions[i] = Condition{c.ID, []string{"=", "<", "<=", ">", ">="}[random.IntN(5)], near(random, c.Type)}
		}

		kept := p.prune(at, all, columns, conditions...)
		for _, f := range all {
			if slices.Contains(kept, f) {
				continue
			}

			pruned[columns[index(columns).ids[conditions[0].Column]].Type]++

			for _, row := range rows[f.Source] {
				require.True(t, slices.ContainsFunc(conditions, func(c Condition) bool {
					i := index(columns).ids[c.Column]

					return !holds(columns[i].Type, row[i], c)
				}), "all of %v are true for %v", conditions, row)
			}
		}
	}

	for _, c := range columns {
		require.Positive(t, pruned[c.Type], c.Type)
	}
}

func (p place) prune(t Table, files []File, columns []Column, conditions ...Condition) (kept []File) {
	p.t.Helper()

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		kept, err = p.Prune(p.t.Context(), q, t, files, columns, conditions)

		return err
	}))

	return kept
}

func TestExcludes(t *testing.T) {
	t.Parallel()

	var (
		nan  = math.NaN()
		noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
		day  = noon.Truncate(24 * time.Hour)
		long = "sixteen letters "
	)

	for _, test := range []struct {
		kind     Type
		groups   [][]any
		operator string
		value    any
		excluded bool
	}{
		{Bigint, [][]any{{int64(-5), int64(7)}}, "=", int64(8), true},
		{Bigint, [][]any{{int64(-5), int64(7)}}, "=", int64(7), false},
		{Bigint, [][]any{{int64(-5), int64(7)}}, "<", int64(-5), true},
		{Bigint, [][]any{{int64(-5), int64(7)}}, "<=", int64(-5), false},
		{Bigint, [][]any{{int64(-5)}, {int64(7)}}, ">", int64(7), true},
		{Bigint, [][]any{{int64(-5)}, {int64(7)}}, ">=", int64(7), false},
		{Bigint, [][]any{{int64(-5)}, {int64(7)}}, ">", int64(6), false},
		{Bigint, [][]any{{int64(1)}}, "=", 8.0, false},
		{Bigint, [][]any{{int64(1)}}, "=", "8", false},
		{Bigint, [][]any{{int64(1)}}, "<>", int64(1), false},
		{Bigint, [][]any{{int64(1)}}, "!", int64(9), false},
		{Bigint, [][]any{{nil, nil}, {nil}}, "=", int64(8), true},
		{Bigint, [][]any{{nil, nil}, {nil}}, "is", int64(8), false},
		{Bigint, [][]any{{nil, nil}, {int64(8)}}, "=", int64(8), false},
		{Bigint, [][]any{{nil, nil}, {int64(8)}}, "=", int64(9), true},
		{Time, [][]any{{nil, nil}}, "=", "12:00", true},
		{Time, [][]any{{int64(1)}}, "=", int64(2), false},

		{Double, [][]any{{1.0, 2.0}}, "=", 2.5, true},
		{Double, [][]any{{1.0, 2.0}}, "<", 1.0, true},
		{Double, [][]any{{1.0, 2.0, nan}}, ">", 2.5, false},
		{Double, [][]any{{1.0, 2.0, nan}}, ">=", nan, false},
		{Double, [][]any{{1.0, 2.0, nan}}, "=", nan, false},
		{Double, [][]any{{1.0, 2.0, nan}}, "<", nan, false},
		{Double, [][]any{{1.0, 2.0}, {nan}}, "=", nan, false},
		{Double, [][]any{{nan}}, "=", 1.0, false},
		{Double, [][]any{{math.Copysign(0, -1)}}, "=", 0.0, false},
		{Double, [][]any{{0.0}}, "<", math.Copysign(0, -1), true},
		{Double, [][]any{{0.0}}, "<=", math.Copysign(0, -1), false},
		{Double, [][]any{{1.0}}, "=", int64(8), false},

		{Boolean, [][]any{{false, nil}}, "=", true, true},
		{Boolean, [][]any{{false, true}}, "=", true, false},
		{Boolean, [][]any{{true}}, "<", true, true},

		{Date, [][]any{{day}}, "=", noon, true},
		{Date, [][]any{{day}}, "<", noon, false},
		{Date, [][]any{{day}}, ">=", noon, true},
		{Date, [][]any{{day}}, "=", day, false},
		{Date, [][]any{{day.AddDate(-400, 0, 0)}}, "<", day.AddDate(-400, 0, 0), true},
		{Timestamp, [][]any{{noon}}, "=", noon, false},
		{Timestamp, [][]any{{noon}}, ">", noon.Add(-time.Nanosecond), false},
		{Timestamp, [][]any{{noon}}, ">", noon, true},
		{Timestamp, [][]any{{noon.AddDate(-400, 0, 0)}}, ">=", noon, true},

		{Decimal(9, 2), [][]any{{rat("-1.28"), rat("1.27")}}, "<", rat("-1.28"), true},
		{Decimal(9, 2), [][]any{{rat("-1.28"), rat("1.27")}}, "<", rat("-1.279"), false},
		{Decimal(9, 2), [][]any{{rat("-1.28"), rat("1.27")}}, ">", rat("1.2699"), false},
		{Decimal(9, 2), [][]any{{rat("-1.28"), rat("1.27")}}, ">=", rat("1.2701"), true},
		{Decimal(38, 10), [][]any{{rat("-1.28")}}, "=", rat("1.28"), true},
		{Decimal(38, 10), [][]any{{rat("-1.28")}}, "=", rat("-1.28"), false},
		{Decimal(18, 3), [][]any{{rat("1.28")}}, "=", int64(9), false},
		{Decimal(18, 3), [][]any{{rat("1.28")}}, "=", (*big.Rat)(nil), false},

		{Varchar, [][]any{{"B", "a"}}, "=", "C", false},
		{Varchar, [][]any{{"B", "a"}}, "=", "b", true},
		{Varchar, [][]any{{"z", "é"}}, ">", "z", false},
		{Varchar, [][]any{{"\uffff"}}, ">", "𐍈", true},
		{Varchar, [][]any{{"𐍈"}}, ">", "\uffff", false},
		{Varchar, [][]any{{"", "a"}}, "<", "", false},
		{Varchar, [][]any{{"a\x00"}}, "<=", "a", true},
		{Varchar, [][]any{{long + "b"}}, ">", long + "a", false},
		{Varchar, [][]any{{long + "b"}}, ">", long + "c", false},
		{Varchar, [][]any{{long + "b"}}, "=", long + "c", false},
		{Varchar, [][]any{{long + "b"}}, "=", long, false},
		{Varchar, [][]any{{long + "b"}}, "=", "sixteen letters", true},
		{Varchar, [][]any{{long + "b"}}, ">", "sixteen letters!", true},
		{Varchar, [][]any{{strings.Repeat("\ud7ff", 17)}}, ">=", strings.Repeat("\ud7ff", 16) + "\U0010ffff", false},
		{Varchar, [][]any{{strings.Repeat("\U0010ffff", 17)}}, ">", strings.Repeat("\U0010ffff", 16), false},
		{Varchar, [][]any{{"b"}, {strings.Repeat("a", 5000)}}, "<", "b", false},
		{Varchar, [][]any{{"b"}, {nil}}, "<", "b", true},
		// The writer of the test omits only the greatest value of the first row group, which is too long.
		{Varchar, [][]any{{"a", strings.Repeat("z", 5000)}, {"b"}}, "=", strings.Repeat("z", 5000), false},
		{Varchar, [][]any{{"", strings.Repeat("z", 5000)}, {"b"}}, ">", "c", false},
		{Varchar, [][]any{{"", ""}, {"b"}}, "=", "c", true},
		{JSON, [][]any{{"1"}}, "=", "2", false},
	} {
		column := []Column{{ID: 3, Name: "c", Type: test.kind}}

		groups := make([][][]any, len(test.groups))
		for g, values := range test.groups {
			for _, value := range values {
				groups[g] = append(groups[g], []any{value})
			}
		}

		d, err := describeBytes(parquetRows(t, column, groups...), column)
		require.NoError(t, err)

		c := Condition{3, test.operator, test.value}
		require.Equal(t, test.excluded, c.excludes(test.kind, d.bounds[3], d.rows), "%v of %s %v", c, test.kind, test.groups)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()

	columns := []Column{{1, "n", Bigint}, {2, "text", Varchar}, {3, "none", Double}}

	d, err := describeBytes(parquetRows(t, columns, [][]any{{int64(1), "first", nil}}, [][]any{{int64(2), strings.Repeat("z", 5000), nil}}), columns)
	require.NoError(t, err)
	require.NotContains(t, d.bounds, 2, "its statistics are about some rows only")
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0}, d.bounds[1].Lower)
	require.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 0}, d.bounds[1].Upper)
	require.Zero(t, *d.bounds[1].Nulls)
	require.Empty(t, d.bounds[3].Lower)
	require.Equal(t, int64(2), *d.bounds[3].Nulls)
	require.NotContains(t, string(d.entry), "first", "nor does the manifest tell of them")

	// 16 characters have up to 64 bytes. A file without rows has no bounds.
	d, err = describeBytes(parquetRows(t, columns, [][]any{{int64(1), strings.Repeat("𐍈", 20), nil}}), columns)
	require.NoError(t, err)
	require.Len(t, d.bounds[2].Lower, maxBound)

	d, err = describeBytes(parquetRows(t, columns), columns)
	require.NoError(t, err)
	require.Empty(t, d.bounds)
}

func TestPrune(t *testing.T) {
	t.Parallel()

	var (
		p, at = newPlace(t), newTable()
		id    = Column{Name: "id", Type: Bigint}
		first = p.add(at, Append, 0, 10, id)
		over  = func(n int64) Condition { return Condition{1, ">=", n} }
	)

	p.add(at, Append, 10, 10, id)
	p.add(at, Append, 20, 10, id, Column{Name: "price", Type: Decimal(10, 2)})
	last := p.add(at, Append, 100, 10, Column{Name: "price", Type: Decimal(12, 2)}, id)
	require.Equal(t, first.Columns[0], last.Columns[0])

	_, files := p.current(at)
	require.Len(t, files, 4)
	require.Equal(t, files[1:], p.prune(at, files, last.Columns, over(10)))
	require.Equal(t, files[3:], p.prune(at, files, last.Columns, over(30)))
	require.Empty(t, p.prune(at, files, last.Columns, over(110)))
	require.Equal(t, files[1:2], p.prune(at, files, last.Columns, over(15), Condition{1, "<", int64(20)}))
	require.Equal(t, files, p.prune(at, files, last.Columns))
	require.Equal(t, files, p.prune(at, files, nil, over(110)), "a column that is not known")
	require.Equal(t, files, p.prune(newTable(), files, last.Columns, over(110)), "files of another table")
	require.Empty(t, p.prune(at, nil, last.Columns, over(1)))

	// A wider decimal has the same scale, so bounds of narrow ones stay valid. A file without the column is kept.
	price := Condition{2, ">", rat("0.5")}
	require.Equal(t, []File{files[0], files[1], files[3]}, p.prune(at, files, last.Columns, price))

	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE lake_files SET bounds = NULL WHERE object_key = $1", files[0].Key)

		return err
	}))
	require.Equal(t, []File{files[0], files[3]}, p.prune(at, files, last.Columns, over(100)), "of an older release")

	moved := newTable()
	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error { return MoveTableTx(t.Context(), tx, at, moved) }))
	require.Equal(t, []File{files[0], files[3]}, p.prune(moved, files, last.Columns, over(100)))
}
