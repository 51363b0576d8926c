// Package server serves the REST API: routes, the checks that every request passes, and error responses.
//
// A request passes, in this order: the log line and the recovery from panics (observe.go), security headers and CORS,
// the route (router.go). Operations of the contract then pass the checks of guard.go, always in the same order:
//
//	token → rate limit → path, query and headers → owner-only, operators → content type → size → parse → validation → handler
//
// Handlers return a value or an error; only error.go writes errors. The router has one table of handlers by operationId: the
// generated ones, those of rawHandlers, and those of the agents. A service whose table differs from the contract does not
// start. An operation needs a token unless the contract says "security: []".
package server
