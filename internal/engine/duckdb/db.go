package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

const spill = "spill" // folder for data that does not fit into memory

// database is one DuckDB instance with one connection.
type database struct {
	db     duckdb.Database
	conn   duckdb.Connection
	values []engine.Parameter // values of the parameters of the statement
}

// open creates a DuckDB instance that can access only the folders in and tmp. The operating system enforces the same
// restriction; DuckDB's own check has better error messages.
func open(in, tmp string) (*database, error) {
	var (
		d      database
		config duckdb.Config
		reason string
	)

	if duckdb.CreateConfig(&config) == duckdb.StateError {
		return nil, errors.New("preparing DuckDB's settings")
	}
	defer duckdb.DestroyConfig(&config)

	if duckdb.OpenExt(":memory:", &d.db, config, &reason) == duckdb.StateError {
		return nil, fmt.Errorf("opening DuckDB: %s", reason)
	}

	if duckdb.Connect(d.db, &d.conn) == duckdb.StateError {
		return nil, errors.New("connecting to DuckDB")
	}

	for _, setting := range []string{
		`SET autoinstall_known_extensions = false`,
		`SET autoload_known_extensions = false`,
		`SET allow_community_extensions = false`,
		`SET allow_persistent_secrets = false`,
		`SET TimeZone = 'UTC'`,
		`SET temp_directory = ` + text(filepath.Join(tmp, spill)),
		`SET enable_progress_bar = true`,
		`SET enable_progress_bar_print = false`,
		`SET threads = 1`,
		`SET allowed_directories = [` + text(in+"/") + `, ` + text(tmp+"/") + `]`,
		`SET enable_external_access = false`,
	} {
		if err := d.exec(setting); err != nil {
			return nil, err
		}
	}

	return &d, nil
}

// limit sets the memory and threads of a job and then locks the settings permanently.
func (d *database) limit(memory int64, threads int) error {
	for _, setting := range []string{
		fmt.Sprintf(`SET memory_limit = '%dB'`, memory),
		`SET threads = ` + strconv.Itoa(max(threads, 1)),
		`SET lock_configuration = true`,
	} {
		if err := d.exec(setting); err != nil {
			return err
		}
	}

	return nil
}

// statementError is an error that DuckDB returned for a statement.
type statementError struct{ message string }

func (e *statementError) Error() string { return e.message }

func (d *database) exec(statement string) error {
	_, err := d.change(statement)

	return err
}

// change runs a statement and returns the number of rows that it wrote.
func (d *database) change(statement string) (rows int64, err error) {
	if err := expressible(statement); err != nil {
		return 0, err
	}

	var result duckdb.Result
	defer func() { duckdb.DestroyResult(&result) }()

	if len(d.values) > 0 {
		if result, err = d.execute(statement); err != nil {
			return 0, err
		}
	} else if duckdb.Query(d.conn, statement, &result) == duckdb.StateError {
		return 0, &statementError{duckdb.ResultError(&result)}
	}

	return int64(duckdb.RowsChanged(&result)), nil //nolint:gosec // no file has 2^63 rows
}

// rows reads a small result into a slice. DuckDB returns the result as one JSON text, which encoding/json decodes. The
// alias __row cannot collide with a column, because such names are reserved.
func rows[T any](d *database, statement string) ([]T, error) {
	if err := expressible(statement); err != nil {
		return nil, err
	}

	var result duckdb.Result

	state := duckdb.Query(d.conn, `SELECT CAST(coalesce(json_group_array(to_json(__row)), '[]') AS VARCHAR) FROM (`+statement+`) __row`, &result)
	defer duckdb.DestroyResult(&result)

	if state == duckdb.StateError {
		return nil, &statementError{duckdb.ResultError(&result)}
	}

	chunk := duckdb.FetchChunk(result)
	defer duckdb.DestroyDataChunk(&chunk)

	if duckdb.DataChunkGetSize(chunk) != 1 {
		return nil, errors.New("DuckDB returned no result")
	}

	data := duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))

	decoder := json.NewDecoder(strings.NewReader(duckdb.StringTData((*duckdb.StringT)(data))))
	decoder.UseNumber()

	var list []T
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("reading DuckDB's result: %w", err)
	}

	return list, nil
}

// row reads a small result that must have exactly one row.
func row[T any](d *database, statement string) (first T, err error) {
	list, err := rows[T](d, statement)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("DuckDB returned %d rows instead of one", len(list))
	}

	if err != nil {
		return first, err
	}

	return list[0], nil
}

// progress returns DuckDB's estimate of the progress of the running statement, from 0 to 1.
func (d *database) progress() float64 {
	now := duckdb.QueryProgress(d.conn)
	percent, _, _ := duckdb.QueryProgressTypeMembers(&now)

	return min(max(percent/100, 0), 1)
}

// expressible rejects a statement with a NUL character. DuckDB would end the statement there.
func expressible(statement string) error {
	if strings.ContainsRune(statement, 0) {
		return invalid("A name has a NUL character. Remove it.")
	}

	return nil
}

// text returns a SQL string literal.
func text(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

// path returns a SQL string literal for the path of one file. It escapes wildcards, because DuckDB interprets paths as
// patterns.
func path(s string) string {
	return text(strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s))
}

// texts returns a comma-separated list of SQL string literals.
func texts(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = text(s)
	}

	return strings.Join(quoted, ", ")
}

// name returns a quoted SQL identifier.
func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
