// Package connection keeps the other systems from which users have data fetched, and is the only way to reach them.
//
// Invariants:
//   - A connection belongs to an account. Only its owner changes and shares it. Those with whom it is shared read with it. They never get its secret.
//   - Secrets are encrypted with a key of the operator, are never returned, and reach no log, error or audit entry.
//   - A connection is made only to a host that the operator allows, and only to the host of the connection. The address is checked after the name was resolved and
//     before anything is sent: it is public, or in a network of the operator. Redirects are not followed, and proxies of the environment are not used.
//   - What the other side writes is neither stored nor shown, except the names, sizes and content of files. Problems are told in words of this package.
//
// Faults: NotFound, Forbidden, ValidationFailed, Conflict, LimitExceeded, InvalidState, UpstreamUnavailable.
package connection
