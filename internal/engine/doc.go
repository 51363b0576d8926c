// Package engine is a session of DuckDB in a sealed child: files in, typed Parquet out; statements in, rows out.
//
// The child's program is package engine/duckdb, which only the server's binary links. This package has the
// other end and the words that both use. Everything that a child says is hostile: it is bounded when it is
// read (package sandbox) and checked here before anybody acts on it.
//
//	Open ──▶ Link the files ──▶ Inspect: columns, types, doubts ──▶ Convert each file ──▶ Take the Parquet ──▶ Close
//	Open ──▶ Parse: the tree ──▶ Link the files ──▶ Run: columns, then rows or a file ──▶ Close
//
// Faults: InvalidFile and LimitExceeded about the files, Unavailable and Timeout about the child.
package engine
