// Package api is the contract: openapi.yaml, written by hand, and what is generated from it: the types,
// the strict server that internal/server implements, and the Go client.
//
// Operations with x-quern-planned are part of the contract and not built yet: they are left out of the
// served document and of everything generated. Operations with x-quern-raw are served by handlers of
// their own, so they are in the document and not in the generated code; those with x-quern-unread, whose
// body the server does not read itself, are left out of the generated server alone.
package api

import _ "embed"

//go:generate go run ./gen

// Document is the served contract as JSON.
//
//go:embed openapi.gen.json
var Document []byte
