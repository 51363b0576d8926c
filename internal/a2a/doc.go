// Package a2a makes the agents of Quern available to other agents: each agent is a server of A2A 1.0 over JSON-RPC.
//
// A task is a run. This package stores nothing: the state of a task and every event of its stream are derived from the log
// of the run. Any replica can therefore serve a task, and all streams of a task deliver the same events in the same order.
//
//	JSON-RPC ──▶ rpc.go ──▶ handler.go ──▶ run ──▶ log of the run ──▶ order_….go ──▶ events of the protocol
//
// Invariants:
//   - A failure before a stream has opened is a JSON-RPC error. After that, the failure of the run is a status of the task,
//     and any other failure, such as a credential that is no longer valid, ends the stream with a JSON-RPC error.
//   - A task of another account, a task of another agent, and a task that does not exist return the same error.
//   - Times are UTC, in milliseconds.
//
// Differences from the protocol: the stream of nl2ql does not begin with the task, and a request without a version is
// treated as version 1.0.
package a2a
