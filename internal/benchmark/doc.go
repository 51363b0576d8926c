// Package benchmark asks the verified questions of a namespace again, without the verified answers, and tells which answers are right.
//
//	        Create               a worker has asked all questions
//	request ──────▶ running ─────────────────────────────────────▶ completed
//	                   ├──── Cancel ─────────────────────────────▶ cancelled
//	                   └──── the caller may no longer, or a fault ▶ failed
//
// Each question is a run of the caller who started the benchmark. The rows of its answer are compared with the rows of the verified
// statement, which reads the same snapshots.
//
// Invariants:
//   - No verified question answers a question of a benchmark.
//   - A question is asked once, also if a worker dies. Its run is bound to the benchmark before it begins, and goes on by its own log.
//   - Few questions of a benchmark are in progress at once, and they wait behind those of people.
//   - The questions are asked with the rights of the caller who started the benchmark, as long as that caller may edit the namespace.
//   - Who may not read all datasets that the questions need does not see that the benchmark exists.
//   - One benchmark of a namespace runs at a time.
//
// Faults: NotFound, Forbidden, Conflict, InvalidState, ValidationFailed, and those of the packages run and query.
package benchmark
