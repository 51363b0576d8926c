package duckdb

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// span returns a part of a file.
func span(content []byte, s engine.Span) []byte { return content[s.From:s.To] }

// TestPieces checks that every piece is a file of its own, that all pieces together have all rows in the order of the
// statement, and that their bodies are the file of the result.
func TestPieces(t *testing.T) {
	t.Parallel()

	const (
		columns = "range AS id, 'a \"quoted\"' || chr(10) || range AS \"a text\nwith lines\", CASE WHEN range % 3 = 0 THEN 'x' END AS word"
		some    = `SELECT ` + columns + ` FROM range(500000) ORDER BY id DESC`
		none    = `SELECT ` + columns + ` FROM range(0)`
	)

	for i, form := range []engine.Form{engine.Parquet, engine.Arrow, engine.CSV, engine.EscapedCSV, engine.Rows, engine.Parquet} {
		for statement, rows := range map[string]int{some: 500_000, none: 0} {
			version := 1 + i/5 // the last one is Parquet of version 2

			t.Run(fmt.Sprintf("%s %d of %d rows", form, version, rows), func(t *testing.T) {
				t.Parallel()

				q := asked(statement, form)
				q.ParquetVersion = version
				q.Pieces = &engine.PieceSize{Rows: 130_000, Bytes: 64 << 20}

				p := inProcess(t)
				d, err := p.prepareQuery(q)
				require.NoError(t, err)
				ran, err := p.cutResult(d, q)
				require.NoError(t, err)
				require.EqualValues(t, rows, ran.Rows)

				whole, err := os.ReadFile(filepath.Join(p.tmp, ran.File))
				require.NoError(t, err)

				var ends, joined []byte
				if ran.Ends != "" {
					ends, err = os.ReadFile(filepath.Join(p.tmp, ran.Ends))
					require.NoError(t, err)
				}

				next := rows - 1

				for i, piece := range ran.Pieces {
					own := bytes.Join([][]byte{span(ends, piece.Head), span(whole, piece.Body), span(ends, piece.Tail)}, nil)
					require.EqualValues(t, len(own), piece.Bytes())

					ids := idsOf(t, own, form)
					require.Len(t, ids, int(piece.Rows), "piece %d", i)

					for _, id := range ids {
						require.EqualValues(t, next, id)

						next--
					}

					joined = append(joined, span(whole, piece.Body)...)
				}

				require.Equal(t, -1, next)
				require.True(t, bytes.Equal(whole, append(joined, span(whole, ran.End)...)))
				require.Len(t, idsOf(t, whole, form), rows)

				if rows == 0 {
					require.Len(t, ran.Pieces, 1)
				} else {
					require.GreaterOrEqual(t, len(ran.Pieces), 2)
				}
			})
		}
	}
}

// idsOf reads a file with the reader of its format.
func idsOf(t *testing.T, content []byte, form engine.Form) (ids []int64) {
	t.Helper()

	if form == engine.Arrow {
		reader, err := ipc.NewReader(bytes.NewReader(content))
		require.NoError(t, err)

		defer reader.Release()

		for reader.Next() {
			column, ok := reader.RecordBatch().Column(0).(*array.Int64)
			require.True(t, ok)

			ids = append(ids, column.Int64Values()...)
		}

		require.NoError(t, reader.Err())

		return ids
	}

	path := filepath.Join(t.TempDir(), "piece")
	require.NoError(t, os.WriteFile(path, content, 0o600))

	db, err := unlocked()
	require.NoError(t, err)

	read := map[engine.Form]string{
		engine.Parquet: `read_parquet(%s)`, engine.Rows: `read_json(%s, format = 'newline_delimited', columns = {id: 'BIGINT'})`,
		engine.CSV: `read_csv(%s, header = true, all_varchar = true)`, engine.EscapedCSV: `read_csv(%s, header = true, all_varchar = true)`,
	}[form]

	require.NoError(t, db.lines(`SELECT CAST(id AS VARCHAR) FROM `+fmt.Sprintf(read, text(path)), func(line []byte) bool {
		var id int64

		_, err := fmt.Sscan(strings.TrimSpace(string(line)), &id)
		require.NoError(t, err)

		ids = append(ids, id)

		return true
	}))

	return ids
}

// BenchmarkCut compares writing a result in pieces with DuckDB's own COPY.
func BenchmarkCut(b *testing.B) {
	const statement = `SELECT range AS id, (range * 7919) % 1000003 AS a, (range % 100) / 7.0 AS price, 'city ' || (range % 5000) AS city FROM range(5000000)`

	for _, form := range []engine.Form{engine.Parquet, engine.Arrow, engine.CSV, engine.Rows} {
		for _, size := range []*engine.PieceSize{nil, {Rows: 1_000_000, Bytes: 64 << 20}} {
			if size == nil && form == engine.Rows {
				continue
			}

			b.Run(fmt.Sprintf("%s/pieces=%t", form, size != nil), func(b *testing.B) {
				for range b.N {
					q := asked(statement, form)
					q.Pieces = size
					p := inProcess(b)
					d, err := p.prepareQuery(q)
					require.NoError(b, err)

					if size == nil {
						_, err = p.file(d, q)
					} else {
						_, err = p.cutResult(d, q)
					}

					require.NoError(b, err)
				}
			})
		}
	}
}
