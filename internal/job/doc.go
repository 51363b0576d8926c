// Package job runs work that outlives a request, on any replica.
//
// River delivers: a job is inserted in the transaction that makes it necessary, so neither exists without
// the other, and is worked at least once. But River does not know whether a worker is alive. Leases do:
// a worker holds the lease of its work and renews it; every write it makes for the work passes Fence in
// the transaction of the write; a lease that ran out is taken from its holder by Sweep, and the work is
// delivered again. A worker that was only slow finds itself fenced off. A job that runs for a minute without a
// lease is delivered again too: its worker died before it had one.
//
//	          InsertTx                    Hold                     done or failed
//	request ───────────▶ job waiting ───────────▶ held, renewed ───────────────────▶ released
//	                          ▲                        │ worker died: until passes
//	                          └────────── Sweep ◀──────┘
//
// Faults: Unavailable and Timeout from the database. ErrLost is not a fault: it never leaves a worker.
package job
