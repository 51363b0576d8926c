package form_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
	"github.com/stretchr/testify/require"
)

// database is a DuckDB instance in memory.
type database struct {
	db   duckdb.Database
	conn duckdb.Connection
}

func open(t *testing.T) *database {
	t.Helper()

	var d database

	require.Equal(t, duckdb.StateSuccess, duckdb.Open(":memory:", &d.db))
	require.Equal(t, duckdb.StateSuccess, duckdb.Connect(d.db, &d.conn))
	t.Cleanup(func() {
		duckdb.Disconnect(&d.conn)
		duckdb.Close(&d.db)
	})

	return &d
}

func (d *database) exec(t *testing.T, statement string) {
	t.Helper()

	var result duckdb.Result

	state := duckdb.Query(d.conn, statement, &result)
	defer duckdb.DestroyResult(&result)

	require.Equal(t, duckdb.StateSuccess, state, "%s\n%s", duckdb.ResultError(&result), statement)
}

// rows returns the rows of a statement in their order, each as its values in JSON.
func (d *database) rows(statement string) (list []string, err error) {
	var result duckdb.Result

	state := duckdb.Query(d.conn, `SELECT CAST(to_json(__row) AS VARCHAR) FROM (`+statement+`) AS __row`, &result)
	defer duckdb.DestroyResult(&result)

	if state == duckdb.StateError {
		return nil, errors.New(duckdb.ResultError(&result))
	}

	for {
		chunk := duckdb.FetchChunk(result)
		if chunk.Ptr == nil {
			return list, nil
		}

		data := unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))), int(duckdb.DataChunkGetSize(chunk)))

		for i := range data {
			values, err := ordered(duckdb.StringTData(&data[i]))
			if err != nil {
				return nil, err
			}

			list = append(list, strings.Join(values, " "))
		}

		duckdb.DestroyDataChunk(&chunk)
	}
}

// ordered returns the values of a JSON object in their order. Numbers have at most three decimal places.
func ordered(object string) (list []string, err error) {
	decoder := json.NewDecoder(strings.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}

	for decoder.More() {
		if _, err := decoder.Token(); err != nil { // the name
			return nil, err
		}

		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}

		switch v := value.(type) {
		case nil:
			list = append(list, "-")
		case float64:
			list = append(list, strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64))
		default:
			list = append(list, fmt.Sprint(v))
		}
	}

	return list, nil
}
