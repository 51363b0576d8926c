// Package engine runs DuckDB sessions in sealed children. A session converts files to typed Parquet, or runs statements
// and returns rows.
//
// The child's program is package engine/duckdb, which only the program quern-engine contains. This package contains the
// parent's side and the types of the messages that both sides exchange. The child is not trusted: package sandbox
// limits the size of everything that is read from it, and this package checks each answer before it is used.
//
//	Open ──▶ Mount the files ──▶ Inspect: columns, types, doubts ──▶ Convert each file ──▶ Take the Parquet ──▶ Close
//	Open ──▶ Parse: the tree ──▶ Mount the files ──▶ Run: columns, then rows or a file ──▶ Close
//
// Faults: InvalidFile and LimitExceeded for problems with the files; Unavailable and Timeout for problems with the
// child.
package engine
