// Package dev contains what `quernd dev` runs besides the service itself, on this machine only: PostgreSQL, an object
// store on a folder, an issuer without passwords, and sample data.
//
// All persistent data is in one folder, which only one process at a time may use. If a process is killed, the next one
// on the same folder ends the processes that it left running. All listeners are on loopback, and `quernd serve` does
// not use this package.
package dev
