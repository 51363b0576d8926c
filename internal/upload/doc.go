// Package upload implements upload sessions. Clients send files straight to the object store, in parts, by presigned
// URLs. The service signs the URLs and records the files; their bytes do not pass through the service.
//
//	file:     preparing ──finish──▶ completed        session:  preparing ──last file finished──▶ completed
//	              │                     │                          │
//	              └──abort, expiry──▶ aborted ◀─abort─┘            └──abort, expiry, no file left──▶ aborted
//
// Invariants:
//   - The row of a file is inserted before its object is written, so that after a crash the rows list everything that
//     may be in the store. The one exception is a multipart upload whose id was not stored before the crash. It is
//     found by its day, because keys begin with the day.
//   - The object store, not the client, decides which parts exist and how large they are.
//   - A file is completed in the same transaction that may complete its session.
//   - A completed file is reserved for an ingestion, in the uploader's account, before the ingestion exists. The
//     request or the cleanup confirms or releases the reservation afterwards. A file that was loaded belongs to one
//     dataset and is kept until that dataset is removed.
//   - Nothing is removed before its remove_at, and rows decide what is removed. A row is claimed (its file becomes
//     aborted) before its object is removed, and only a completed file can be bound. If a binding and a cleanup
//     happen at the same time, one of the two fails.
//
// Faults: NotFound for what does not belong to the caller, Forbidden, ValidationFailed, InvalidState, Conflict while
// another request reserves a file, PayloadTooLarge, RateLimited for too many open sessions or bytes, Unavailable
// while the object store does not answer.
package upload
