// Package auth says who asks. A bearer token is either an access token of the OIDC issuer or an API
// token of ours; both end in a Principal, which everything that touches a tenant's data takes as an
// argument.
//
// It owns accounts, the identities and names that lead to them, and API tokens.
//
// Invariants:
//   - An account is made at the first request of an identity (issuer, subject) and keeps the username
//     that it got then.
//   - Of an API token only the hash is stored. A token made with a token never outlives or exceeds it:
//     revoking one revokes all that were made with it.
//   - An access token is refused as Unauthorized only when it is known to be bad; while that cannot be
//     known, because the issuer does not answer, the fault is Unavailable.
//   - Work that outlives its request checks the credential again with Credentials.
//
// Faults: Unauthorized, Unavailable, Forbidden (USERNAME_TAKEN, USERNAME_INVALID, a token beyond its
// rights), NotFound, ValidationFailed, Conflict.
package auth
