// Package source keeps datasets fresh from what is in another system: it loads each file of a connection exactly once, or the rows of a database.
//
//	            claim: a session        content received,
//	            in the upload package   its ingestion is named     ingestion completed
//	new file ──────────────▶ claimed ──────────────▶ loading ──────────────────────────▶ loaded
//	                           │                        ├── the ingestion was cancelled ─▶ skipped
//	                           └── cannot be loaded ────┴── the ingestion has failed ────▶ failed
//
// A file whose content has changed is claimed again if the source replaces changed files. Until its new content is received it may become stale: it has rows of an earlier
// content, and is loaded again. The rows of a file that is gone are removed on request: any state but loading ──▶ removing ──▶ removed.
//
// Invariants:
//   - A source belongs to an account, and acts for the credential that made or resumed it. The rights on the dataset and on the connection are checked at every run.
//   - A source has one run at a time (a unique index), and a run has one worker at a time (its lease). Every write of the worker is fenced and checks that the run is
//     still wanted.
//   - The content of a file is read at exactly the ETag that was listed, and is received as a whole or not at all.
//   - The id of the ingestion is recorded, fenced, before the ingestion is created with this id. Creating it again has no effect. From then on the file keeps this
//     ingestion. So a crash at any moment neither loses nor doubles a file, although the file and the ingestion may belong to different accounts.
//   - All ingestions of a file have the same origin. A changed content replaces all rows of this origin in one commit, whatever was restored, deleted or merged before. An
//     ingestion that did not load the content before cannot be retried from then on.
//   - The id of a removal is recorded, fenced, before rows are removed, and a removal with this id happens once. A list that fails, or that has no file at all, removes nothing.
//   - Rows of a database are loaded in the same way, as a file that this package writes. A source has one load of rows in progress. The highest value of its cursor column becomes
//     valid in the transaction that settles the load, and an ingestion that was given up cannot be retried.
//   - A file that somebody must decide about stops the source. What was loaded stays. If the file has another content in a later run, its ingestion is given up, and the new
//     content is loaded.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict, LimitExceeded, InvalidState.
package source
