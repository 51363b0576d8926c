// Package catalog stores namespaces, datasets, their definitions, semantics and grants, and the daily usage and limits
// of accounts. It decides who may do what.
//
// Invariants:
//   - An account owns everything in it. Every key begins with the account, and a transaction touches the rows of one
//     account only, except for the directory and for one step of TransferDataset.
//   - Names are stored as written and compared without case. A deleted dataset or namespace is a tombstone: its name is
//     free at once, and a new one with that name inherits nothing. It keeps its grants, which give no access until it is
//     restored.
//   - decide and access.role are the only functions that decide about access. Something that a caller may not see
//     looks exactly like something that does not exist.
//   - A grant names an account, a group, or a username that no account has yet. A grant to such a username takes
//     effect when a person signs in with that name, because usernames come from the issuer and do not change.
//   - Each grant has an inverse row in the directory, written in the same transaction, so that "shared with me" is an
//     index lookup.
//   - The search document of a dataset is written in the transaction that changes the dataset. A trigger first marks
//     the document as stale, so that a job writes any document that was missed or was changed by an older program.
//   - The most specific limit applies to an account: its own, the highest of its groups, that of everyone. Usage is counted in the
//     transaction that records the work.
//   - The epoch of a dataset rises when the dataset is cleared, deleted or restored.
//
// Faults: NotFound, Forbidden, Conflict (a name that is taken, a namespace that is not empty), ValidationFailed,
// PreconditionFailed, LimitExceeded, RateLimited.
package catalog
