package rig

import (
	"errors"
	"fmt"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// BareDuckDB runs statements one after the other in a new instance.
func BareDuckDB(statements ...string) error {
	var (
		db     duckdb.Database
		conn   duckdb.Connection
		config duckdb.Config
		reason string
	)

	if duckdb.CreateConfig(&config) == duckdb.StateError {
		return errors.New("preparing DuckDB's settings")
	}
	defer duckdb.DestroyConfig(&config)

	if duckdb.OpenExt(":memory:", &db, config, &reason) == duckdb.StateError {
		return fmt.Errorf("opening DuckDB: %s", reason)
	}
	defer duckdb.Close(&db)

	if duckdb.Connect(db, &conn) == duckdb.StateError {
		return errors.New("connecting to DuckDB")
	}
	defer duckdb.Disconnect(&conn)

	for _, statement := range statements {
		var result duckdb.Result

		state := duckdb.Query(conn, statement, &result)
		reason := duckdb.ResultError(&result)
		duckdb.DestroyResult(&result)

		if state == duckdb.StateError {
			return fmt.Errorf("%s: %s", statement, reason)
		}
	}

	return nil
}
