// Package e2e is the black-box tests: the built quernd as a process of its own, on a database, an issuer and a place in the store of its own,
// spoken to over HTTP and by its commands. `make stack` must have started the servers.
//
// harness_test.go starts quernd, keycloak_test.go makes realms and tokens, store_test.go looks into the store, table_test.go reads tables, http_test.go sends requests and holds every
// answer against the contract. Nothing here knows the inside of the service; where a test needs a state that no
// operation makes, it writes to the database.
package e2e
