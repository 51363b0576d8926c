// Package auth authenticates callers. A bearer token is either an access token of the OIDC issuer or an API token of
// Quern. Both lead to a Principal, which every function that touches an account's data takes as an argument.
//
// Package auth owns accounts, the identities and usernames that lead to them, and API tokens.
//
// Invariants:
//   - An account is created at the first request of an identity (issuer, subject) and keeps the username that it got
//     then.
//   - Only the hash of an API token is stored. A token that was created with another token never outlives or exceeds
//     that token, and revoking a token revokes every token that was created with it.
//   - An access token is refused as Unauthorized only if it is certain that it is not valid. While the issuer does
//     not answer, this cannot be decided, and the fault is Unavailable.
//   - Work that outlives its request checks the credential again with Credentials.
//
// Faults: Unauthorized, Unavailable, Forbidden (username.taken, username.invalid, a token beyond its rights),
// NotFound, ValidationFailed, Conflict, RateLimited.
package auth
