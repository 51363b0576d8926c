// Package verified keeps questions whose statements people have verified, and finds the one that answers a question.
//
//	            Create                  a needed column changes           Update, after all checks
//	statement ─────────▶ verified ───────────────────────────▶ suspended ─────────────────────────▶ verified
//	                        └──────────────── Retire ─────────────┴──────────▶ retired
//
// Invariants:
//   - A statement is kept only if it ran with the rights of its author and its result follows from the data alone.
//   - A question is answered only if each of its content words is a word of the wording or the value of a parameter, and if
//     exactly one verified question fits. What is merely near is a suggestion.
//   - The statement runs with the rights of the caller who asks. Who may not read one of its datasets does not see that the verified
//     question exists.
//   - No statement answers after a dataset or a column that it needs has changed.
//   - Two verified questions of a namespace never have the same wording.
//   - Wordings are found by hash. No question scans those of a namespace.
//
// Faults: NotFound, Forbidden, Conflict, PreconditionFailed, ValidationFailed, LimitExceeded, and those of the package query.
package verified
