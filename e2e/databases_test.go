package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// createDatabase creates an empty database that is dropped when the test ends, and returns its address for the owner.
func createDatabase(t *testing.T) string {
	t.Helper()

	return copyDatabase(t, "template1")
}

// migratedDatabase is createDatabase with a migrated schema.
func migratedDatabase(t *testing.T) string {
	t.Helper()

	return copyDatabase(t, common.template(t))
}

func copyDatabase(t *testing.T, template string) string {
	t.Helper()

	name := "e2e_" + uuid.NewString()
	common.roles.make(t)
	require.NoError(t, onServer("CREATE DATABASE %s OWNER %s TEMPLATE %s", name, ownerRole, template), "is the stack running? make stack")
	t.Cleanup(func() { require.NoError(t, onServer("DROP DATABASE %s WITH (FORCE)", name)) })

	return databaseAddress(t, name)
}

func databaseAddress(t *testing.T, name string) string {
	t.Helper()

	address, err := url.Parse(stack.Env(t, "QUERN_TEST_DATABASE_URL"))
	require.NoError(t, err)

	address.Path = "/" + name

	return asRole(t, address.String(), ownerRole)
}

// onServer runs a statement about databases and roles. Each %s in it is replaced by a quoted name.
func onServer(format string, names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	address, err := stack.Lookup("QUERN_TEST_DATABASE_URL")
	if err != nil {
		return err
	}

	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()

	quoted := make([]any, len(names))
	for i, name := range names {
		quoted[i] = pgx.Identifier{name}.Sanitize()
	}

	_, err = connection.Exec(ctx, fmt.Sprintf(format, quoted...))

	return err
}

// migrate runs `quernd migrate` on a database and grants rights to the serving role.
func migrate(t *testing.T, address string) {
	t.Helper()
	migrateWith(t, binary(), address)
}

// migrateWith migrates with another build of quernd.
func migrateWith(t *testing.T, program, address string) {
	t.Helper()

	command := exec.CommandContext(t.Context(), program, "migrate", "--grant", servingRole)
	command.Env = []string{"QUERN_DATABASE_URL=" + address}
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}

func withDatabase(t *testing.T, address string, do func(context.Context, *pgx.Conn)) {
	t.Helper()

	// Cleanup functions call this after the context of the test has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()

	connection, err := pgx.Connect(ctx, address)
	require.NoError(t, err, "is the stack running? make stack")

	defer func() { _ = connection.Close(ctx) }()

	do(ctx, connection)
}
