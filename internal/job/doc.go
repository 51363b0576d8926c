// Package job runs work that outlives a request, on any replica.
//
// River delivers jobs. A job is inserted in the transaction that makes it necessary, so neither exists without the
// other, and it is worked at least once. But River does not know whether a worker is alive. Leases solve this: a
// worker holds the lease of its work and renews it. Every write of the worker calls FenceTx in the same transaction.
// Sweep takes an expired lease from its holder and delivers the work again. A worker that was only slow can then no
// longer write. A job that runs for a minute without a lease is also delivered again, because its worker may have died
// before it had a lease.
//
//	          InsertTx             Hold                    done, failed, or no longer wanted
//	request ───────────▶ waiting ────────▶ held, renewed ────────────────────────────────────▶ ended
//	                        ▲                 │    │
//	                        ├───── River ◀────┘    │ the worker died, or could not renew: until passes
//	                        │  may pass later      ▼
//	                        └────── Sweep ◀────── lost
//
// Attempt is the only implementation of this life. Its user says how to do the work, which failures may pass, and how
// to record a failure:
//
//  1. If this process has no room for the work, the job waits for two seconds. The attempt does not count.
//  2. Hold acquires the lease. If another worker holds it, the job is delivered again when that lease would expire.
//  3. The work is done, while the lease is renewed every five seconds. Every transaction that writes begins with FenceTx:
//     Lease.InTx does this, and Lease.Record also checks that the work is still wanted.
//  4. If the lease is lost, the context of the work ends, and the worker writes nothing more.
//  5. A failure that may pass goes to River, which repeats the job after a delay that grows. Any other failure, and
//     every failure of the last attempt, is recorded with Lease.Conclude and ends the work.
//  6. The lease is given back, also after a failure, so that the next attempt need not wait for it. If a worker died
//     between 5 and 6, its job is delivered again, finds that the work has ended, and calls GiveBack.
//
// When the process stops, it takes no more jobs. After StopTime/2 the contexts of running jobs end, which counts as a
// failure that may pass.
//
// Ingestions, exports and the chores of maintenance use all of Attempt. A run records its own failures, because they
// are events of its log. Commits to a table and posted rows are not jobs of their own, so they use Hold. Periodic jobs
// are made by Every, and use Alone if one worker is enough.
//
// Faults: Unavailable and Timeout from the database. ErrLost and ErrStopped are not faults, because they never leave a
// worker.
package job
