package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/duckdb"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/sandbox"
)

// TestMain also runs the sealed process: the test binary starts itself.
func TestMain(m *testing.M) {
	if os.Args[0] == sandbox.Name {
		os.Exit(sandbox.Main(os.Args[1:], "", map[string]sandbox.Program{engine.DuckDB: duckdb.Program()}))
	}

	os.Exit(m.Run())
}

// openReader returns a reader that uses the engine as ingestions do.
func openReader(t *testing.T) reader {
	t.Helper()

	dir := t.TempDir()

	children, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "jobs"), Binary: "/proc/self/exe", Idle: 2, Programs: []string{engine.DuckDB}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(children.Close)

	sessions := engine.New(engine.Config{
		Sandbox: children, Program: engine.DuckDB, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sessions: 4, Memory: 1 << 30, Threads: 2, Disk: 2 << 30,
	})

	return func(t *testing.T, files []string, given json.RawMessage) outcome {
		t.Helper()

		got, err := readFiles(t, sessions, dir, files, given)
		if failed, ok := errors.AsType[*engine.FileError](err); ok {
			got.Fault = &failure{Code: failed.Code, Message: failed.Message}

			return got
		}

		require.NoError(t, err)

		return got
	}
}

func readFiles(t *testing.T, sessions *engine.Engine, dir string, files []string, given json.RawMessage) (got outcome, err error) {
	t.Helper()

	var options engine.Options
	if given != nil {
		require.NoError(t, json.Unmarshal(given, &options))
	}

	session, err := sessions.Open(t.Context(), time.Minute)
	require.NoError(t, err)

	defer session.Close()

	var (
		sources  []engine.Source
		arriving sync.WaitGroup
	)

	defer arriving.Wait()

	for i, path := range files {
		content, err := os.ReadFile(path)
		require.NoError(t, err)

		copied, err := os.CreateTemp(dir, "arriving-")
		require.NoError(t, err)

		defer os.Remove(copied.Name())

		source := engine.Source{Name: fmt.Sprintf("file-%d", i), Size: int64(len(content))}
		require.NoError(t, session.Mount(copied.Name(), source.Name))
		sources = append(sources, source)

		arriving.Go(func() { arrive(t, copied, content) })
	}

	bounds := ingest.DefaultBounds()
	bounds.Unpacked = corpusUnpacked

	found, err := session.Preview(sources, options, bounds)
	if err != nil {
		return got, err
	}

	for i := range found.Columns {
		found.Columns[i].ID = i + 1
		got.Columns = append(got.Columns, column{Name: found.Columns[i].Name, Type: found.Columns[i].Type})
	}

	for _, d := range found.Doubts {
		got.Doubts = append(got.Doubts, doubt{d.Column, d.Option, d.Message})
	}

	var rows int64

	for i, source := range sources {
		converted, err := session.Convert(engine.ConvertRequest{Source: i, Columns: found.Columns, Output: source.Name + ".parquet"}, nil)
		if err != nil {
			return got, err
		}

		rows += converted.Rows
		require.Equal(t, converted.SetAsideCount, int64(len(converted.SetAside)))

		for _, aside := range converted.SetAside {
			got.SetAside = append(got.SetAside, setAside(aside))
		}
	}

	if err := ingest.TooManySetAside(rows, int64(len(got.SetAside))); err != nil {
		return got, err
	}

	for i, source := range sources {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.parquet", filepath.Base(filepath.Dir(files[i])), time.Now().UnixNano()))
		_, err := session.Take(source.Name+".parquet", path)
		require.NoError(t, err)

		got.Rows = append(got.Rows, tableRows(t, path)...)
		require.NoError(t, os.Remove(path))
	}

	return got, nil
}

// arrive writes a file in a few steps, as a file that is fetched arrives while it is inspected.
func arrive(t *testing.T, to *os.File, content []byte) {
	t.Helper()
	defer to.Close()

	for step := 1; len(content) > 0; step *= 30 {
		time.Sleep(3 * time.Millisecond)

		n, err := to.Write(content[:min(step, len(content))])
		if err != nil {
			t.Error(err)

			return
		}

		content = content[n:]
	}
}

func tableRows(t *testing.T, path string) (rows [][]any) {
	t.Helper()

	opened, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)

	defer opened.Close()

	reader, err := pqarrow.NewFileReader(opened, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)

	table, err := reader.ReadTable(context.Background())
	require.NoError(t, err)

	defer table.Release()

	batches := array.NewTableReader(table, 0)
	defer batches.Release()

	for batches.Next() {
		batch := batches.RecordBatch()
		for i := range int(batch.NumRows()) {
			var cells []any
			for j := range int(batch.NumCols()) {
				cells = append(cells, cell(t, batch.Column(j), i))
			}

			rows = append(rows, cells)
		}
	}

	require.NoError(t, batches.Err())

	return rows
}

// cell returns a value as the corpus writes it.
func cell(t *testing.T, values arrow.Array, i int) any {
	t.Helper()

	if values.IsNull(i) {
		return nil
	}

	switch values := values.(type) {
	case *array.Boolean:
		return values.Value(i)
	case *array.Int64:
		return json.Number(values.ValueStr(i))
	case *array.Float64:
		return json.Number(values.ValueStr(i))
	case *array.Decimal128:
		return json.Number(values.ValueStr(i))
	case *array.String:
		return strings.Clone(values.Value(i))
	case *array.Date32:
		return values.Value(i).ToTime().Format(time.DateOnly)
	case *array.Timestamp:
		return values.Value(i).ToTime(arrow.Microsecond).Format("2006-01-02T15:04:05.999999")
	case *array.Time64:
		return values.Value(i).ToTime(arrow.Microsecond).Format("15:04:05.999999")
	default:
		require.Fail(t, "a column of type "+values.DataType().String())

		return nil
	}
}
