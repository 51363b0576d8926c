// Package a2a lets other agents ask ours: each of them is a server of A2A 1.0, over JSON-RPC.
//
// A task is a run. Nothing is kept here: what a task is, and every event of its stream, follows from the log of the run,
// so any replica can say it, and all streams of a task say the same in the same order.
//
//	JSON-RPC ──▶ rpc.go ──▶ handler.go ──▶ run ──▶ its log ──▶ order_….go ──▶ events of the protocol
//
// Invariants:
//   - What fails before a stream has begun is an error of JSON-RPC; after that a failure is a status of the task.
//   - A task of somebody else, of the other agent, and one that never was get the same answer.
//   - Times are UTC, in milliseconds.
//
// Where it differs from the protocol: the stream of nl2ql does not open with the task, and a request that names no
// version counts as 1.0.
package a2a
