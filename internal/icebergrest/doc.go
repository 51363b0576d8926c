// Package icebergrest is the catalog that Trino reads: Iceberg's REST protocol, read only, on a listener of its own.
//
// A statement opens a Schema. It has a random name and a random token, and contains exactly the tables that the statement
// may read, each with one snapshot. Trino sends the token with every request of that statement, so the statement finds
// nothing else: schemas are never listed, the name of another one is absent even for those who know it, and every write
// is refused. The schema ends with the statement or at its deadline, whichever comes first.
//
// A schema is a row in PostgreSQL, because Trino has one address for the catalog and may ask any replica.
//
// Faults: those of postgres and lake.
package icebergrest
