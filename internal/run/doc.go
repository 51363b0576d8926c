// Package run keeps questions and what comes of them: conversations, runs, and the log of a run's events.
//
//	        Ask                    a worker takes the lease          the agent ends
//	request ───▶ running, queued ──────────────────────▶ running ────────────────────▶ completed or failed
//	                 │                                      │
//	                 ├──────────────── Cancel ──────────────┼────────────────────────▶ cancelled
//	                 └───────────── the deadline ───────────┴────────────────────────▶ expired
//
// A run is its log. The run, its first event and its job are made in one transaction; from then on whoever holds
// the lease writes an event for everything that it did, and nobody sees anything that is not written. A worker that
// dies leaves a log from which the next one goes on: what is recorded is not done again.
//
// Invariants:
//   - Events of a run are numbered from 1 without gaps, because whoever writes one locks the row of the run; the last
//     one is the end, and nothing comes after it.
//   - A conversation and its runs are seen by whoever asked, and by nobody else.
//   - Every read of what came of a run asks again whether the reader may see the datasets that it read, and writes into
//     the audit of their owners that it was read.
//   - A run and a stream end when the credential that began them is no longer valid.
//   - A restricted token reaches the runs that it began, and those that ended and whose reads it may all read.
//   - A rating is in force when the tracing store has accepted it; what the store has otherwise is repaired.
//   - One statement at a time reads the new events for all streams of a replica.
//
// Faults: Unauthorized, NotFound, Forbidden, Conflict, InvalidState, RunNotCompleted, ValidationFailed, RateLimited, UpstreamUnavailable,
// Unavailable.
package run
