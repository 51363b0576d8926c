// Package catalog is what exists and who may: namespaces, datasets, their definitions, grants, and what
// was used of what is allowed.
//
// Invariants:
//   - An account owns what is in it. Every key begins with the account, and a transaction touches the rows
//     of one account, the directory aside.
//   - Names are kept as written and compared without case. A deleted dataset is a tombstone: its name is
//     free at once and a new dataset under it inherits nothing.
//   - decide is the only place that says who may do what. What a caller may not see looks exactly like
//     what does not exist.
//   - A grant names an account, a group, or a username that nobody has yet. The last one takes effect by
//     itself when somebody signs in with that name, because names come from the issuer and stay.
//   - Each grant has its inverse in the directory, written in the same transaction, so that "shared with
//     me" is an index and not a search.
//   - What is searched of a dataset is made in the transaction that changes it. A trigger marks it first, so that
//     what was forgotten, or written by an older program, is made by a job.
//   - The epoch of a dataset rises when it is cleared, deleted or restored.
//
// Faults: NotFound, Forbidden, Conflict (a name that is taken, a namespace that is not empty),
// ValidationFailed, PreconditionFailed, LimitExceeded.
package catalog
