// Package ingest turns uploaded files and posted rows into snapshots of a dataset, exactly once.
//
//	          Create                 worker holds the lease                     committed with others
//	request ─────────▶ queued ──▶ running: fetch, inspect, convert, store ──▶ staged ─────────────────▶ completed
//	                     │             │                                        │
//	                     └─ Cancel ────┼──▶ cancelled                 failed ◀──┴── the dataset was cleared
//	                     ▲             │
//	                     └─── Retry ───┴── waiting: a doubt must be accepted first
//
// Files are inspected while they are fetched, and data files are stored while they are written.
//
// An ingestion is staged when all its data files are written and its row has ready_at; its status is still running.
//
// The dataset need not exist: it is created in the transaction of its first snapshot.
//
// Posted rows follow the same steps without the queue: the request itself holds the lease, and is answered when its
// snapshot is committed.
//
// A large ingestion of several files is spread: each file is a job (part.go), once to be inspected and once to be converted. The job of the ingestion
// (spread.go) is delivered at the beginning and after the last file of each step:
//
//	begin ──▶ inspect each file ──▶ join: columns, doubts, lake.Plan ──▶ convert each file ──▶ gather ──▶ staged
//
// The committer is a role, not a process. A process with a staged ingestion takes the lease for commits to the
// table and commits all staged ingestions, including those of others. Posts to one dataset are therefore committed
// together, and staged ingestions of a dead worker are committed by the next one.
//
// Invariants:
//   - The bytes of a file are parsed only in a sealed process, and the results of the sealed process are checked.
//   - The row of an object is inserted before the object is written (package lake). Every write of a worker is fenced
//     by its lease.
//   - An ingestion is completed in the transaction that moves the pointer of the table, or not at all.
//   - An ingestion that was accepted under an earlier epoch of the dataset fails with Conflict.
//
// Faults: NotFound, Forbidden, Conflict, InvalidState, ValidationFailed, LimitExceeded, Unavailable, Timeout.
package ingest
