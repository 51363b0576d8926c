// Package webhook sends events to addresses that people name, signed after Standard Webhooks.
//
//	                  an event gets its number           2xx
//	event ───────────▶ delivery waiting, in a lane ──────────────────────────▶ delivered
//	                        ▲                │ anything else
//	                        └── backoff ─────┤
//	                                         └─ RetryTime is over, or the webhook is disabled ─▶ failed
//
// Invariants:
//   - A delivery is made in the transaction that numbers its event, and ends only when the receiver has accepted it or the time is over: at least once.
//   - A lane is the deliveries of one webhook about one thing. One sender at a time works on a lane, in the order of the numbers.
//   - The body is made when it is sent, of what the maker of the webhook may see at that moment. What the maker may not see is not sent.
//   - No connection is made to an address that is not public, unless the operator allows it. The address of the connection is checked, not the name.
//     Redirects are not followed.
//   - Push notifications of A2A are webhooks for the events of one run. Their credentials are stored encrypted, and they are deleted with the run.
//   - A webhook ends with the credential that made it.
//   - The secret of a webhook is not stored. What a receiver answers is neither stored nor logged.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict, LimitExceeded, Unavailable.
package webhook
