package lake

import (
	"database/sql"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icesql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
)

// open loads the table with the catalog of iceberg-go, which finds it by the standard rows alone.
func (p place) open(t Table) *table.Table {
	p.t.Helper()

	db, err := sql.Open("pgx", p.url)
	require.NoError(p.t, err)
	db.SetMaxIdleConns(0)
	p.t.Cleanup(func() { require.NoError(p.t, db.Close()) })

	catalog, err := icesql.NewCatalog("quern", db, icesql.Postgres, iceberg.Properties{
		"init_catalog_tables": "false", "endpoint": p.config.Endpoint, "region": p.config.Region,
		"access-key": p.config.AccessKey, "secret-key": p.config.SecretKey, "path-style": map[bool]string{true: "true"}[p.config.PathStyle],
	})
	require.NoError(p.t, err)

	found, err := catalog.LoadTable(p.t.Context(), table.Identifier{t.Account.String(), t.Dataset.String()})
	require.NoError(p.t, err)

	return found
}

// column is a column as another reader sees it.
type column struct {
	kind         string
	count, nulls int64
	sum          float64
}

// scan reads all rows as another program would.
func (p place) scan(t Table, options ...table.ScanOption) (rows int64, columns map[string]column) {
	p.t.Helper()

	result, err := p.open(t).Scan(options...).ToArrowTable(p.t.Context())
	require.NoError(p.t, err)

	defer result.Release()

	columns = map[string]column{}

	for i := range int(result.NumCols()) {
		field := result.Schema().Field(i)
		seen := column{kind: field.Type.String()}

		for _, chunk := range result.Column(i).Data().Chunks() {
			seen.nulls += int64(chunk.NullN())

			for row := range chunk.Len() {
				if chunk.IsValid(row) {
					seen.count++
					seen.sum += number(chunk, row)
				}
			}
		}

		columns[field.Name] = seen
	}

	return result.NumRows(), columns
}

func number(values arrow.Array, row int) float64 {
	switch values := values.(type) {
	case *array.Int64:
		return float64(values.Value(row))
	case *array.Float64:
		return values.Value(row)
	case *array.Decimal128:
		return values.Value(row).ToFloat64(0)
	case *array.Date32:
		return float64(values.Value(row))
	case *array.Timestamp:
		return float64(values.Value(row))
	case *array.Time64:
		return float64(values.Value(row))
	case *array.Boolean:
		return map[bool]float64{true: 1}[values.Value(row)]
	case *array.String:
		return float64(len(values.Value(row)))
	case *array.LargeString:
		return float64(len(values.Value(row)))
	default:
		return -1
	}
}

// TestEvolution adds, drops and widens columns, and checks that another Iceberg reader reads the table correctly.
func TestEvolution(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	all := []Column{
		{Name: "id", Type: Bigint},
		{Name: "price", Type: Decimal(10, 2)},
		{Name: "ratio", Type: Double},
		{Name: "ok", Type: Boolean},
		{Name: "day", Type: Date},
		{Name: "at", Type: Timestamp},
		{Name: "hour", Type: Time},
		{Name: "a.b name", Type: Varchar},
		{Name: "more", Type: JSON},
	}
	first := p.add(at, Append, 0, 100, all...)
	require.Equal(t, int64(100), first.Rows)

	for i, c := range first.Columns {
		require.Equal(t, i+1, c.ID)
	}

	rows, seen := p.scan(at)
	require.Equal(t, int64(100), rows)
	require.Equal(t, map[string]column{
		"id": {"int64", 100, 0, 4950}, "price": {"decimal(10, 2)", 100, 0, 4950}, "ratio": {"float64", 100, 0, 2475}, "ok": {"bool", 100, 0, 50},
		"day": {"date32", 100, 0, 4950}, "at": {"timestamp[us]", 100, 0, 4950}, "hour": {"time64[us]", 100, 0, 4950},
		"a.b name": {seen["a.b name"].kind, 100, 0, 290}, "more": {seen["more"].kind, 100, 0, 290},
	}, seen)
	require.Contains(t, seen["more"].kind, "utf8")
	require.Equal(t, "json", p.open(at).Schema().Field(8).Doc)

	// One new column, several absent ones, a wider decimal. Names are matched without case.
	second := p.add(at, Append, 100, 100, Column{Name: "ID", Type: Varchar}, Column{Name: "Price", Type: Decimal(14, 4)}, Column{Name: "new", Type: Bigint})
	require.Equal(t, Column{ID: 1, Name: "id", Type: Bigint}, second.Columns[0], "what the table has keeps its type")
	require.Equal(t, Column{ID: 2, Name: "price", Type: Decimal(12, 2)}, second.Columns[1], "digits before the point have room, the scale stays")
	require.Equal(t, Column{ID: 10, Name: "new", Type: Bigint}, second.Columns[9])

	rows, seen = p.scan(at)
	require.Equal(t, int64(200), rows)
	require.Equal(t, column{"int64", 200, 0, 19900}, seen["id"])
	require.Equal(t, column{"decimal(12, 2)", 200, 0, 19900}, seen["price"])
	require.Equal(t, column{"float64", 100, 100, 2475}, seen["ratio"])
	require.Equal(t, column{"int64", 100, 100, 14950}, seen["new"])

	// Bounds prune: only one of the two files can contain this value.
	tasks, err := p.open(at).Scan(table.WithRowFilter(iceberg.GreaterThan(iceberg.Reference("id"), int64(150)))).PlanFiles(t.Context())
	require.NoError(t, err)
	require.Len(t, tasks, 1)

	// Replace: a column with another type gets a new id, a column with the same type keeps its id.
	third := p.add(at, Replace, 0, 10, Column{Name: "id", Type: Varchar}, Column{Name: "price", Type: Decimal(12, 2)}, Column{Name: "ratio", Type: Double})
	require.Equal(t, []Column{{11, "id", Varchar}, {2, "price", Decimal(12, 2)}, {3, "ratio", Double}}, third.Columns)

	rows, seen = p.scan(at)
	require.Equal(t, int64(10), rows)
	require.Len(t, seen, 3)
	require.Equal(t, column{seen["id"].kind, 10, 0, 20}, seen["id"])

	// Replace again with the first type: an assigned id is never used for another column.
	fourth := p.add(at, Replace, 0, 5, Column{Name: "id", Type: Bigint}, Column{Name: "extra", Type: Boolean})
	require.Equal(t, []Column{{1, "id", Bigint}, {12, "extra", Boolean}}, fourth.Columns)

	// Every earlier snapshot is unchanged.
	restored, err := p.Commit(t.Context(), Change{Table: at, Mode: Restore, Snapshot: second.ID}, noMore)
	require.NoError(t, err)
	require.Equal(t, second.Columns, restored.Columns)

	rows, seen = p.scan(at)
	require.Equal(t, int64(200), rows)
	require.Equal(t, column{"decimal(12, 2)", 200, 0, 19900}, seen["price"])

	rows, seen = p.scan(at, table.WithSnapshotID(third.Number))
	require.Equal(t, int64(10), rows)
	require.Equal(t, column{seen["id"].kind, 10, 0, 20}, seen["id"])
	p.requireSound()
}

// TestPlan checks that no id is ever assigned to two columns, in any order of plans.
func TestPlan(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	plan := func(mode Mode, want ...Column) []Column {
		planned, err := p.Plan(t.Context(), at, want, mode)
		require.NoError(t, err)

		return planned
	}

	// Nothing is committed yet. The same name and type get the same id, another type gets another id.
	require.Equal(t, []Column{{1, "a", Bigint}}, plan(Append, Column{Name: "a", Type: Bigint}))
	require.Equal(t, []Column{{1, "A", Bigint}, {2, "b", Double}}, plan(Append, Column{Name: "A", Type: Bigint}, Column{Name: "b", Type: Double}))
	require.Equal(t, []Column{{3, "a", Varchar}}, plan(Replace, Column{Name: "a", Type: Varchar}))

	number := p.stage(p.Lake, at, []Column{{1, "a", Bigint}}, 0, 10)
	text := p.stage(p.Lake, at, []Column{{3, "a", Varchar}}, 0, 10)

	_, err := p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{number}}, noMore)
	require.NoError(t, err)
	_, err = p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{text}}, noMore)
	require.ErrorIs(t, err, ErrStale)
	require.Equal(t, []Column{{1, "a", Bigint}}, plan(Append, Column{Name: "a", Type: Varchar}), "so it plans again")

	for name, want := range map[string][]Column{
		"no name":      {{Name: "", Type: Bigint}},
		"same name":    {{Name: "x", Type: Bigint}, {Name: "X", Type: Bigint}},
		"no type":      {{Name: "x", Type: "int"}},
		"much decimal": {{Name: "x", Type: Decimal(39, 0)}},
		"odd decimal":  {{Name: "x", Type: "decimal(5, 2)"}},
	} {
		_, err := p.Plan(t.Context(), at, want, Append)
		require.ErrorContains(t, err, "VALIDATION_FAILED", name)
	}
}
