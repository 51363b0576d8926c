// Package upload is upload sessions: files go straight from the client to the object store, in parts, by
// presigned addresses; the service signs and records, and no byte of them passes through it.
//
//	file:     preparing ──finish──▶ completed        session:  preparing ──last file finished──▶ completed
//	              │                     │                          │
//	              └──abort, expiry──▶ aborted ◀─abort─┘            └──abort, expiry, no file left──▶ aborted
//
// Invariants:
//   - A row stands before its object: whatever the process dies of, the rows know what may be in the store.
//     The one exception, a multipart upload that was begun and whose id was not written down, is found by
//     its day: keys begin with it.
//   - What the store says is the truth about parts and sizes, not what the client says.
//   - A file is completed in the transaction that may complete its session.
//   - A completed file is reserved for an ingestion before that one exists, in the uploader's account; the
//     reservation is confirmed or released afterwards, by the request or by whoever cleans. A file that was
//     loaded belongs to one dataset and is kept as long as it.
//   - Nothing is removed before its remove_at, and everything is removed by rows. A row is claimed (its file becomes
//     aborted) before its object is removed, and only a completed file can be bound: of a binding and a cleaner at the
//     same moment one wins.
//
// Faults: NotFound for what is not the caller's, Forbidden, ValidationFailed, InvalidState,
// PayloadTooLarge, RateLimited for too much at once, Unavailable while the store does not answer.
package upload
