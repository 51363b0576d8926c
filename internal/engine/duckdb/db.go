package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

const spill = "spill" // folder for what does not fit into memory

// database is one DuckDB instance with one connection.
type database struct {
	db   duckdb.Database
	conn duckdb.Connection
}

// open makes an instance that can reach nothing but the two folders. The operating system holds the same
// line; this one gives better errors.
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

// limit sets what a job may use, and closes the settings for good.
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

// statementError is DuckDB's refusal of a statement.
type statementError struct{ message string }

func (e *statementError) Error() string { return e.message }

func (d *database) exec(statement string) error {
	_, err := d.change(statement)

	return err
}

// change runs a statement and tells how many rows it wrote.
func (d *database) change(statement string) (rows int64, err error) {
	if err := expressible(statement); err != nil {
		return 0, err
	}

	var result duckdb.Result

	state := duckdb.Query(d.conn, statement, &result)
	defer duckdb.DestroyResult(&result)

	if state == duckdb.StateError {
		return 0, &statementError{duckdb.ResultError(&result)}
	}

	return int64(duckdb.RowsChanged(&result)), nil //nolint:gosec // no file has 2^63 rows
}

// rows reads a small result into a slice. It travels as one JSON text: DuckDB writes it, encoding/json reads it.
// No column can be called like the alias.
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
		return nil, errors.New("DuckDB gave no result")
	}

	data := duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))

	decoder := json.NewDecoder(strings.NewReader(duckdb.StringTData((*duckdb.StringT)(data))))
	decoder.UseNumber()

	var list []T
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("DuckDB's result: %w", err)
	}

	return list, nil
}

// row reads the one row of a small result.
func row[T any](d *database, statement string) (first T, err error) {
	list, err := rows[T](d, statement)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("DuckDB gave %d rows instead of one", len(list))
	}

	if err != nil {
		return first, err
	}

	return list[0], nil
}

// progress is how far the running statement is, from 0 to 1, as far as DuckDB can tell.
func (d *database) progress() float64 {
	now := duckdb.QueryProgress(d.conn)
	percent, _, _ := duckdb.QueryProgressTypeMembers(&now)

	return min(max(percent/100, 0), 1)
}

// expressible: a NUL ends a statement, so what has one in its name cannot be asked for.
func expressible(statement string) error {
	if strings.ContainsRune(statement, 0) {
		return invalid("A name has a NUL character. Take it out.")
	}

	return nil
}

// text is a SQL literal.
func text(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

// path is a SQL literal for one file: DuckDB takes a name for a pattern.
func path(s string) string {
	return text(strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s))
}

// texts is a SQL list of literals.
func texts(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = text(s)
	}

	return strings.Join(quoted, ", ")
}

// name is a SQL identifier.
func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
