// Package feed tells callers what happened to what they may see: their own datasets, namespaces, runs, sources and connections, and what others share with them.
//
//	           Open                   Next                      Close, or the credential lapses
//	request ─────────▶ catching up ─────────▶ following ──────────────────────────────────────▶ ended
//	                        ▲  pages from the database   │ events from the hub
//	                        └────────────────────────────┘
//	                     too slow, or something new was shared
//
// Invariants:
//   - A stream gives each event once, in the order of the numbers, and a stream that resumes after a number misses nothing after it.
//   - What a caller may see is decided when the event is given, with the rights of that moment.
//   - One statement at a time reads the new events for all streams of a replica.
//   - A stream ends when the credential that opened it is no longer valid.
//
// Faults: Unauthorized, NotFound, ValidationFailed, Unavailable.
package feed
