// Package e2e holds the black-box tests. Each runs the built quernd as a process on a database and a place in the store of its own, and speaks to it
// over HTTP and by its commands. `make stack` starts the servers, and `make e2e` runs the tests with the runner of this folder.
//
// harness_test.go starts quernd, keycloak_test.go makes realms and tokens, store_test.go looks into the store, table_test.go reads tables,
// http_test.go sends requests and compares every answer with the contract, loop_test.go has the helpers for waiting and for long loops.
// The tests know nothing of the inside of the service. Where one needs a state that no operation makes, it writes to the database.
package e2e
