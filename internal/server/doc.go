// Package server is the REST edge: routes, what every request meets, and the words of errors.
//
// A request passes, in this order: the log line and panics (observe.go), security headers and CORS,
// the route (router.go), then for operations of the contract the checks of guard.go, always alike:
//
//	token → path and query → owner-only → content type → size → parse → validation → handler
//
// Handlers return a value or an error; error.go alone writes errors.
package server
