// Package ingest turns files and posted rows into snapshots of a dataset's table, exactly once.
//
//	          Create                 worker holds the lease                    committed with others
//	request ─────────▶ queued ──▶ running: fetch, inspect, convert, store ──▶ ready ─────────────────▶ completed
//	                     │             │                                        │
//	                     └─ Cancel ────┼──▶ cancelled                 failed ◀──┴── the dataset was cleared
//	                     ▲             │
//	                     └─── Retry ───┴── waiting: a doubt has to be accepted first
//
// The dataset need not exist: it is created in the transaction of its first snapshot.
//
// Posted rows are the same without the queue: the request itself holds the lease, and is answered when its
// snapshot is committed.
//
// The committer is a role, not a process: whoever has something ready takes the lease of the table's commits
// and commits everything that is ready, whosever it is. So posts to one dataset are committed together, and a
// worker that dies leaves work that the next one takes along.
//
// Invariants:
//   - Each byte of a file is read in a sealed child only; what the child says is checked.
//   - An object's row stands before the object (package lake); every write of a worker is fenced by its lease.
//   - An ingestion is completed in the transaction that swaps the table's pointer, or not at all.
//   - What was accepted under an earlier epoch of the dataset ends with Conflict.
//
// Faults: NotFound, Forbidden, Conflict, InvalidState, ValidationFailed, LimitExceeded, Unavailable, Timeout.
package ingest
