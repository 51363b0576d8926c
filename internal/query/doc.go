// Package query is the only access to rows: every read of rows, over REST or by an agent, passes through this package.
// It decides which datasets a caller may read, which snapshots are read, and how many rows and bytes are returned.
//
//	statement ─▶ admit ─▶ parse (sealed process) ─▶ check the tree ─▶ resolve names ─▶ fetch files ─▶ run ─▶ rows
//
// Invariants:
//   - Data is reached only by name: the syntax tree of a statement is checked, and the sealed process receives only
//     views of the datasets that the statement names and the caller may see. A dataset that the caller may not see
//     looks as if it did not exist.
//   - A sealed process is used for one statement. The check of the tree and DuckDB's own settings are further layers
//     of defense.
//   - Snapshots are fixed when names are resolved; the result lists them.
//   - The output of a sealed process is not trusted: rows are checked to be JSON, and error messages are rewritten.
//   - The credential of the caller is checked again just before a statement starts, because the statement may have
//     waited for a slot.
//   - Every statement that reads a dataset is recorded in the audit of the dataset's owner before its first row is
//     returned.
//
// Faults: Unauthorized, NotFound, QueryInvalid, LimitExceeded, RateLimited, Unavailable, Timeout.
package query
