package query

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// bareEngine is DuckDB in this process, with views over data files.
type bareEngine struct {
	db   duckdb.Database
	conn duckdb.Connection
}

// bareView is a dataset with its data files.
type bareView struct {
	name  string
	files []string
}

// openBare opens DuckDB with the resources of a statement of the service, and restricts it as far as its settings
// allow.
func openBare(dir string, threads int, views ...bareView) (*bareEngine, error) {
	var (
		e      bareEngine
		config duckdb.Config
		reason string
	)

	if duckdb.CreateConfig(&config) == duckdb.StateError {
		return nil, errors.New("preparing DuckDB's settings")
	}
	defer duckdb.DestroyConfig(&config)

	if duckdb.OpenExt(":memory:", &e.db, config, &reason) == duckdb.StateError {
		return nil, fmt.Errorf("opening DuckDB: %s", reason)
	}

	if duckdb.Connect(e.db, &e.conn) == duckdb.StateError {
		duckdb.Close(&e.db)

		return nil, errors.New("connecting to DuckDB")
	}

	folders := make([]string, len(views))
	for i, view := range views {
		folders[i] = `'` + filepath.Dir(view.files[0]) + `/'`
	}

	statements := []string{
		`SET autoinstall_known_extensions = false`,
		`SET autoload_known_extensions = false`,
		`SET allow_community_extensions = false`,
		fmt.Sprintf(`SET temp_directory = '%s'`, dir),
		fmt.Sprintf(`SET memory_limit = '%dB'`, queryMemory),
		fmt.Sprintf(`SET threads = %d`, threads),
		`SET allowed_directories = [` + strings.Join(folders, ", ") + `]`,
		`SET enable_external_access = false`,
		`SET lock_configuration = true`,
	}
	for _, view := range views {
		statements = append(statements, fmt.Sprintf(`CREATE VIEW %s AS FROM read_parquet(['%s'])`, view.name, strings.Join(view.files, "', '")))
	}

	for _, statement := range statements {
		var result duckdb.Result

		state := duckdb.Query(e.conn, statement, &result)
		reason := duckdb.ResultError(&result)
		duckdb.DestroyResult(&result)

		if state == duckdb.StateError {
			e.close()

			return nil, fmt.Errorf("%s: %s", statement, reason)
		}
	}

	return &e, nil
}

func (e *bareEngine) close() {
	duckdb.Disconnect(&e.conn)
	duckdb.Close(&e.db)
}

// rows runs a statement and returns its rows, as many as the service would, as one JSON object per line.
func (e *bareEngine) rows(statement string) (lines []byte, count int64, err error) {
	var prepared duckdb.PreparedStatement

	statement = fmt.Sprintf(`SELECT CAST(to_json(__row) AS VARCHAR) FROM (%s) __row LIMIT %d`, statement, queryRows)

	state := duckdb.Prepare(e.conn, statement, &prepared)
	defer duckdb.DestroyPrepare(&prepared)

	if state == duckdb.StateError {
		return nil, 0, errors.New(duckdb.PrepareError(prepared))
	}

	var result duckdb.Result

	state = duckdb.ExecutePreparedStreaming(prepared, &result)
	defer duckdb.DestroyResult(&result)

	if state == duckdb.StateError {
		return nil, 0, errors.New(duckdb.ResultError(&result))
	}

	var out bytes.Buffer

	for {
		chunk := duckdb.FetchChunk(result)
		size := int(duckdb.DataChunkGetSize(chunk))

		if size == 0 {
			duckdb.DestroyDataChunk(&chunk)

			if reason := duckdb.ResultError(&result); reason != "" {
				return nil, 0, errors.New(reason)
			}

			return out.Bytes(), count, nil
		}

		for _, row := range unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))), size) {
			out.WriteString(duckdb.StringTData(&row))
			out.WriteByte('\n')

			count++
		}

		duckdb.DestroyDataChunk(&chunk)
	}
}
