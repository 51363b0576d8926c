// Package query is the one door to rows: whoever reads rows of a dataset, over REST or as an agent, comes
// through Run. It decides who may read what, which snapshots are read, and how much.
//
//	statement ─▶ admit ─▶ parse (in the child) ─▶ check the tree ─▶ resolve names ─▶ fetch files ─▶ run ─▶ rows
//
// Invariants:
//   - Names are the only way to data: a statement is checked by its tree, and only datasets that it names and
//     the caller may see are given to the child, as views. What the caller may not see looks absent.
//   - The child is sealed and used once. The check and DuckDB's own settings are depth behind that.
//   - Snapshots are fixed when names are resolved; the answer says which.
//   - What a child says is hostile: rows are checked to be JSON, errors are put into our words.
//   - The credential of the caller is checked again just before a statement starts: it may have waited.
//   - Every statement that reads a dataset stands in the audit of the dataset's owner before a row goes out.
//
// Faults: Unauthorized, NotFound, QueryInvalid, LimitExceeded, RateLimited, Unavailable, Timeout.
package query
