// Package e2e contains the black-box tests. Each test runs the built quernd as a process with its own database and its own
// location in the object store, and uses it over HTTP and by its commands. `make stack` starts the servers, and `make e2e` runs
// the tests with the runner in this folder.
//
// harness_test.go starts quernd, keycloak_test.go creates realms and tokens, store_test.go inspects the object store,
// table_test.go reads tables, http_test.go sends requests and compares every response with the contract, and loop_test.go has the
// helpers for waiting and for long loops. The tests do not depend on the internals of the service. A test that needs a state that
// no operation creates writes to the database.
package e2e
