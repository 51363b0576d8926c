package app

import (
	"os"
	"testing"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/duckdb"
	"quern.dev/quern/internal/sandbox"
)

// TestMain also runs the sealed process: the test binary starts itself.
func TestMain(m *testing.M) {
	if os.Args[0] == sandbox.Name {
		os.Exit(sandbox.Main(os.Args[1:], engine.Version(), map[string]sandbox.Program{engine.DuckDB: duckdb.Program()}))
	}

	os.Exit(m.Run())
}
