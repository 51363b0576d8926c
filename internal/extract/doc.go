// Package extract reads rows of PostgreSQL databases that belong to others, and writes them to Parquet files.
//
// Invariants:
//   - A connection goes to the one host that it was given, through the dialer that it was given. Nothing of the environment of the service takes part: no PG… variable, no
//     password file, no service file, no socket, no second host.
//   - Everything happens in one transaction that is REPEATABLE READ and READ ONLY, so all rows of a load are of one snapshot. Statements, locks and idle time are limited, and the
//     rows come page by page through a cursor.
//   - A value is written exactly as it is, or the load ends. Columns whose type has no exact counterpart are texts.
//   - What the other side writes as an error is not part of any error of this package, except its SQLSTATE.
//
// Faults: none. Errors are RefusalError for a server that refuses, UnfitError for what somebody must change, ErrVersion, and those of the network.
package extract
