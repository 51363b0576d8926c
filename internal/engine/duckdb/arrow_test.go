package duckdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// TestVectorsAsArrow checks that values that are copied from DuckDB's memory are those that a Parquet file has: all of them
// NULL, some, and none, in several batches.
func TestVectorsAsArrow(t *testing.T) {
	t.Parallel()

	const rows = arrowBatch + 77

	var columns []string

	for _, v := range values() {
		p := inProcess(t)
		d, err := p.prepareQuery(asked(`SELECT `+v.sql+` AS v`, engine.Arrow))
		require.NoError(t, err)

		if d.columns[0].kind.arrow == nil || strings.Contains(v.sql, "'nan'") { // NaN is not equal to itself
			continue
		}

		for _, condition := range []string{"true", "range % 3 = 0", "range % 5000 > 100", "false"} {
			columns = append(columns, fmt.Sprintf(`CASE WHEN %s THEN %s END AS "%d"`, condition, v.sql, len(columns)))
		}
	}

	columns = append(columns, `range AS id`, `repeat('text ' || range, range % 20) AS text`, `encode(repeat('x', range % 9)) AS bytes`,
		`CAST(range % 9000 - 4500 AS DECIMAL(4, 0)) AS small`, `range % 2 = 0 AS even`)

	direct := tablesOf(t, fmt.Sprintf(`SELECT %s FROM range(%d)`, strings.Join(columns, ", "), rows))
	require.EqualValues(t, rows, direct.NumRows())

	converted := tablesOf(t, fmt.Sprintf(`SELECT %s, [1] AS list FROM range(%d)`, strings.Join(columns, ", "), rows))
	require.EqualValues(t, rows, converted.NumRows())

	for i, c := range columns {
		require.True(t, arrow.TypeEqual(converted.Column(i).DataType(), direct.Column(i).DataType()), c)
		require.True(t, array.ChunkedEqual(converted.Column(i).Data(), direct.Column(i).Data()), c)
	}
}

// tablesOf returns the rows of a statement as Arrow.
func tablesOf(t *testing.T, statement string) arrow.Table {
	t.Helper()

	path, _ := inProcess(t).fileOf(t, asked(statement, engine.Arrow))

	file, err := os.Open(path)
	require.NoError(t, err)

	defer file.Close()

	reader, err := ipc.NewReader(file)
	require.NoError(t, err)

	defer reader.Release()

	var batches []arrow.RecordBatch

	for reader.Next() {
		reader.RecordBatch().Retain()
		batches = append(batches, reader.RecordBatch())
	}

	require.NoError(t, reader.Err())

	return array.NewTableFromRecords(reader.Schema(), batches)
}

// TestLongTextsAsArrow checks that long texts end a batch before it has all its rows.
func TestLongTextsAsArrow(t *testing.T) {
	t.Parallel()

	p := inProcess(t)
	q := asked(`SELECT repeat('x', 50000) || range AS text FROM range(5000)`, engine.Arrow)
	d, err := p.prepareQuery(q)
	require.NoError(t, err)

	var batches []int64

	ran, err := p.toArrow(d, q, func(rows, _ int64) { batches = append(batches, rows) })
	require.NoError(t, err)
	require.EqualValues(t, 5000, ran.Rows)
	require.Greater(t, len(batches), 1)

	whole, err := os.Stat(filepath.Join(p.tmp, ran.File))
	require.NoError(t, err)
	require.Greater(t, whole.Size(), int64(5000*50000))
}

// TestFailureAsArrow checks that a statement that fails in the middle of its rows has no result.
func TestFailureAsArrow(t *testing.T) {
	t.Parallel()

	p := inProcess(t)
	q := asked(`SELECT CASE WHEN range = 900000 THEN error('stop') ELSE 'x' END AS text FROM range(1000000)`, engine.Arrow)
	d, err := p.prepareQuery(q)
	require.NoError(t, err)

	_, err = p.file(d, q)
	require.ErrorContains(t, err, "stop")
}
