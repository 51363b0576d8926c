// Package lake is the tables: each dataset is one Apache Iceberg table (format 2, unpartitioned) on the
// object store, named by ids, so that a rename moves nothing. Its pointer is a row of the standard
// iceberg_tables, so whatever reads Iceberg reads our tables.
//
// Writers stage data files, and a commit makes one snapshot of those that are ready:
//
//	          StageTx             Write, ReadyTx           Commit
//	(nothing) ───────▶ writing ──────────────────▶ ready ─────────▶ committed
//	                      │ DropTx, or too old       │ DropTx           │ its table was removed, no snapshot that is
//	                      └───────────▶ dropped ◀────┘                  │ kept needs it, or metadata was replaced
//	                                       │ grace                      │ grace
//	                                       └─────────▶ removing ◀───────┘ ─────▶ (nothing)
//
// Invariants:
//   - A row stands before its object, for data files and for Iceberg's own: whatever the process dies of,
//     the rows know what may be in the store. Clean follows rows, only Inspect looks at the store.
//   - The pointer, our rows of the snapshot, and what the caller adds change in one transaction, and no
//     transaction and no lock spans a call to the store.
//   - A field id belongs to one column, of one name and one type (a decimal may get wider), for ever: ids
//     are given under the lock of the table's row before any file is written.
//   - Every field of every file of a snapshot is in the schema of the snapshot.
//   - What no snapshot from one on needs follows from numbers in the rows of objects: generation and left_sequence.
//   - Objects are never changed. A removed one can be in no snapshot, because Commit and Clean both claim
//     its row first.
//   - What a data file's footer says is hostile input.
//
// Faults: NotFound for snapshots that do not exist and tables that were removed, ValidationFailed for columns
// that no table can have, LimitExceeded and Unavailable when the cache has no room, Unavailable while store or
// database do not answer. ErrConflict, ErrStale, ErrDropped, ErrReplaced, ErrExpired and ErrChanged are for the caller to act
// on.
package lake
