// Package trino runs statements on a Trino cluster, over its HTTP protocol. Rows have the same form as those of the sealed
// processes (engine.Rows).
//
// What a statement can see is decided elsewhere: by the schema that its token opens (internal/icebergrest) and by the
// rules of Trino's access control (deploy/trino). What Trino says is checked like what a sealed process says.
//
// Faults: *engine.StatementError for errors in the statement, Timeout, LimitExceeded, and Unavailable if the cluster does
// not answer or fails.
package trino
