// Package dev has what `quernd dev` runs besides the service itself, on this machine alone: PostgreSQL, an object store on a folder, an
// issuer that asks for no password, and sample data.
//
// Everything that is kept lies in one folder, which one process at a time may use. What a killed process left running is ended
// by the next one on the same folder. Nothing listens on any address but loopback, and `quernd serve` does not use this package.
package dev
