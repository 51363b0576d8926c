// Package mcp makes the datasets of Quern available to the models of other programs: it is a server of the Model Context
// Protocol over HTTP.
//
// A tool reads with the rights of the caller, through the same methods as REST. This package stores nothing and keeps no
// sessions, so any replica answers any request. It serves both generations of the protocol: the stateless one of 2026-07-28
// and the earlier ones that begin with initialize.
//
//	POST ──▶ mcp.go ──▶ SDK ──▶ a tool in dataset.go, rows.go, ask.go ──▶ catalog, query, run ──▶ result.go, table.go
//
// Invariants:
//   - A result has at most maxResult bytes of JSON, whatever the data. It is cut while it is read, and says so in words.
//   - A result is the same JSON twice: as structured content and as text, because hosts show models only one of them. Numbers
//     keep their digits.
//   - A mistake of the caller is a result with isError and text only. A failure of the service is a JSON-RPC error.
//   - Names, ids and cursors grant nothing: every call checks the rights of the caller.
//   - Descriptions, hints and messages about progress are fixed texts. Data appears only as values of the result.
//   - Every successful call has an entry in the audit of the caller.
package mcp
