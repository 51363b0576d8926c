// Package api is the contract: openapi.yaml, written by hand, and what is generated from it: the types,
// the strict server that internal/server implements, and the Go client.
//
// Operations with x-quern-planned are part of the contract and not built yet: they are left out of the
// served document and of everything generated. Operations with x-quern-raw are served by handlers of
// their own, so they are in the document and not in the generated code; those with x-quern-unread, whose
// body the server does not read itself, are left out of the generated server alone.
//
// Beside the generated client stand Connect, which makes one that repeats what can be repeated (Retry), Read, which takes
// an answer apart, Pages for lists, Uploader for files, and AskEvents and RunEvents for streams that are taken up again:
//
//	client, err := api.Connect(api.Settings{Server: "https://quern.example.org", Token: token})
//	me, err := api.Read[api.Me](client.GetMe(ctx))
package api

import _ "embed"

//go:generate go run ./gen

// Document is the served contract as JSON.
//
//go:embed openapi.gen.json
var Document []byte
