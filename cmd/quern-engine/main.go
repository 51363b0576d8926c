// Quern-engine is the program of the sealed processes, which read the bytes of users and run statements. quernd starts it; it is of no
// other use. It contains nothing that a sealed process does not need: whatever is linked in, each of them would initialize.
package main

import (
	"os"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/duckdb"
	"quern.dev/quern/internal/sandbox"
)

func main() {
	os.Exit(sandbox.Main(os.Args[1:], engine.Version(), map[string]sandbox.Program{engine.DuckDB: duckdb.Program()}))
}
