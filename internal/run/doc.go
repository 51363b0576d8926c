// Package run stores questions and their results: conversations, runs, and the log of the events of each run.
//
//	        Ask                    a worker takes the lease          the agent ends
//	request ───▶ running, queued ──────────────────────▶ running ────────────────────▶ completed or failed
//	                 │                                      │
//	                 ├──────────────── Cancel ──────────────┼────────────────────────▶ cancelled
//	                 └───────────── the deadline ───────────┴────────────────────────▶ expired
//
//	        the agent asks for a choice            Choose
//	running ───────────────────────────▶ waiting ──────────▶ running
//	                                        ├── a new question in the conversation ──▶ completed
//	                                        ├── Cancel ──────────────────────────────▶ cancelled
//	                                        └── the deadline ────────────────────────▶ expired
//
// A run is defined by its log. The run, its first event and its job are created in one transaction. From then on the worker
// that holds the lease writes an event for each action, and callers see only what is written. If the worker dies, the next
// worker continues from the log and does not repeat what is recorded.
//
// Invariants:
//   - The events of a run are numbered from 1 without gaps, because writing an event locks the row of the run. The last
//     event is the end of the run, and no event follows it.
//   - A run waits for one choice at a time, and goes on with the rights of the caller who chose.
//   - Only the account that asked can see a conversation and its runs.
//   - Every read of the result of a run checks again whether the reader may see the datasets that the run read, and is
//     recorded in the audit of their owners.
//   - A run and a stream end when the credential that started them is no longer valid.
//   - A restricted token can access the runs that it started, and ended runs if it may read all datasets that they read.
//   - A rating is in force when the tracing store has accepted it. Any other rating in the store is repaired.
//   - One statement at a time reads the new events for all streams of a replica.
//
// Faults: Unauthorized, NotFound, Forbidden, Conflict, InvalidState, RunNotCompleted, ValidationFailed, RateLimited, UpstreamUnavailable,
// Unavailable.
package run
