// Package api contains the contract: the hand-written openapi.yaml, and the code that is generated from it: the types,
// the strict server that internal/server implements, and the Go client.
//
// Operations with x-quern-planned are part of the contract but not implemented: they are not in the served document and
// not in the generated code. Operations with x-quern-raw have handwritten handlers, so they are in the document but not
// in the generated code. Operations with x-quern-unread, whose body the server does not parse itself, are only missing
// from the generated server.
//
// Besides the generated client there are Connect, which returns a client that repeats requests where that is safe
// (Retry), Read, which decodes a response, Pages for lists, Uploader for files, and AskEvents and RunEvents for streams
// that resume after an interruption:
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
