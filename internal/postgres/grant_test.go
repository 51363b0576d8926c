package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func execute(t *testing.T, db *postgres.DB, statement string) error {
	t.Helper()

	ctx := context.WithoutCancel(t.Context()) // cleanups run after the test's context has ended

	return db.Do(ctx, func(q postgres.Querier) error {
		_, err := q.Exec(ctx, statement)

		return err
	})
}

// serving creates a role and opens the database as that role.
func serving(t *testing.T, address string) (role string, db *postgres.DB) {
	t.Helper()

	owner := open(t, address)
	role = "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	require.NoError(t, execute(t, owner, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'x'", role)))
	t.Cleanup(func() {
		owner := open(t, address)
		require.NoError(t, execute(t, owner, "DROP OWNED BY "+role))
		require.NoError(t, execute(t, owner, "DROP ROLE "+role))
	})

	u, err := url.Parse(address)
	require.NoError(t, err)

	u.User = url.UserPassword(role, "x")

	return role, open(t, u.String())
}

func TestGrant(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	owner := open(t, address)
	role, db := serving(t, address)

	_, err := db.CheckRights(t.Context())
	require.Equal(t, fault.Unavailable, fault.From(err).Code)
	require.ErrorContains(t, err, "quernd migrate --grant "+role)

	// Grant what the documentation of older releases recommended, and more.
	for _, statement := range []string{
		"ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO " + role, "GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT DELETE ON audit_default TO PUBLIC", "GRANT UPDATE (actor) ON audit TO " + role, "GRANT CREATE ON SCHEMA public TO " + role,
	} {
		require.NoError(t, execute(t, owner, statement))
	}

	require.NoError(t, execute(t, db, "SELECT audit_partition('2030-01-01')"))
	require.Error(t, execute(t, db, "DELETE FROM audit_2030_01"), "a new partition is the owner's alone")

	for range 2 {
		require.NoError(t, owner.CheckRole(t.Context(), role))
		require.NoError(t, owner.Grant(t.Context(), role))

		excess, err := db.CheckRights(t.Context())
		require.NoError(t, err)
		require.Empty(t, excess)
	}

	for _, statement := range []string{
		"SELECT audit_partition('2030-02-01')", "SELECT run_events_partition('2030-02-01')", "DELETE FROM run_events", "SELECT nextval('river_job_id_seq')",
		"SELECT FROM schema_state", "UPDATE leases SET until = now()", "SELECT FROM audit",
	} {
		require.NoError(t, execute(t, db, statement), statement)
	}

	for _, table := range []string{"audit", "audit_default", "audit_2030_01", "audit_2030_02"} {
		for _, statement := range []string{"DELETE FROM %s", "UPDATE %s SET actor = ''", "TRUNCATE %s", "DROP TABLE %s", "ALTER TABLE %s DISABLE TRIGGER ALL"} {
			require.Error(t, execute(t, db, fmt.Sprintf(statement, table)), statement+" "+table)
		}
	}

	require.Error(t, execute(t, db, "UPDATE schema_state SET compatible_from = 0"))
	require.Error(t, execute(t, db, "CREATE TABLE mine ()"))

	// Objects of a later migration can be used at once.
	require.NoError(t, execute(t, owner, "CREATE TABLE later (id bigserial)"))
	require.NoError(t, execute(t, db, "INSERT INTO later DEFAULT VALUES"))
}

// TestGrantTemporaryTable checks that a function with the owner's rights does not use a caller's temporary table
// instead of the real one.
func TestGrantTemporaryTable(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	role, db := serving(t, address)
	require.NoError(t, open(t, address).Grant(t.Context(), role))

	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error {
		for _, statement := range []string{
			"CREATE TEMPORARY TABLE audit_default (LIKE audit)", "INSERT INTO pg_temp.audit_default (account_id, at, id, actor, address, request_id, action, kind, target, namespace, dataset, detail, outcome) " +
				"SELECT gen_random_uuid(), '2030-03-02', gen_random_uuid(), '', '', '', '', '', '', '', '', '', ''",
			"SELECT audit_partition('2030-03-01')",
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}

		var left int

		require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_temp.audit_default").Scan(&left))
		require.Equal(t, 1, left, "the temporary table was emptied in the place of ours")

		return nil
	}))
}

func TestCheckRole(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	owner := open(t, address)
	role, _ := serving(t, address)

	require.ErrorContains(t, owner.CheckRole(t.Context(), "nobody-"+role), "CREATE ROLE")
	require.ErrorContains(t, owner.CheckRole(t.Context(), "postgres"), "cannot be limited by grants")
	require.NoError(t, owner.CheckRole(t.Context(), role))
	require.NoError(t, execute(t, owner, "GRANT pg_write_all_data TO "+role))
	require.ErrorContains(t, owner.Grant(t.Context(), role), "from another role or grantor")
}
