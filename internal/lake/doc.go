// Package lake stores datasets as tables. Each dataset is one Apache Iceberg table (format 2, unpartitioned) on
// the object store. Tables are named by ids, so a rename moves no object. The pointer to the current metadata is
// a row of the standard table iceberg_tables, so any program that reads Iceberg can read the tables.
//
// Writers stage data files, and a commit makes one snapshot from the staged files that are completely written
// (state "ready"):
//
//	          StageTx             Write, ReadyTx           Commit
//	(nothing) ───────▶ writing ──────────────────▶ ready ─────────▶ committed
//	                      │ DropTx                   │ DropTx           │ the table was removed, no kept snapshot
//	                      └───────────▶ dropped ◀────┘                  │ needs the object, or metadata was replaced
//	                                       │ grace period               │ grace period
//	                                       └─────────▶ removing ◀───────┘ ─────▶ (nothing)
//
// A row that stays in the state writing for too long changes to removing directly.
//
// Invariants:
//   - A row is inserted before its object is written, for data files and for Iceberg's own objects. If the process
//     dies at any point, the rows still list every object that may be in the store. Clean works from rows; only
//     Inspect lists the store.
//   - The pointer, the rows of the snapshot, and the rows that the caller adds change in one transaction. No
//     transaction and no lock is held during a call to the store.
//   - A field id belongs permanently to one column with one name and one type (a decimal may become wider). Ids are
//     assigned under the lock of the table's row, before any file is written.
//   - Every field of every file of a snapshot is in the schema of the snapshot.
//   - Two numbers in the row of an object, generation (manifest_generation for a manifest) and left_sequence, determine
//     whether any snapshot from a given one on still needs the object.
//   - Objects never change. A removed object cannot be in a snapshot, because Commit and Clean both claim its row
//     first.
//   - The footer of a data file is hostile input.
//
// Faults: NotFound for a snapshot that does not exist or a table that was removed, ValidationFailed for columns that
// no table can have, LimitExceeded and Unavailable when the cache has no room, Unavailable while the store or the
// database does not answer. The caller must handle ErrConflict, ErrStale, ErrDropped, ErrReplaced, ErrExpired and
// ErrChanged. ErrMissing is an internal error.
package lake
